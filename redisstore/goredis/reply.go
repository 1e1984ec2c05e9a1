package goredis

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/comporta/comporta/redisstore"
	"github.com/redis/go-redis/v9"
)

// value is a reply as [redisstore.Client] promises it, in the list it came in.
// What only the third protocol has becomes what the second has in its place.
func value(reply any) (any, error) {
	switch v := reply.(type) {
	case nil, int64, string:
		return v, nil
	case []any:
		for i := range v {
			one, err := value(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = one
		}
		return v, nil
	case map[any]any:
		list := make([]any, 0, 2*len(v))
		for key, one := range v {
			list = append(list, key, one)
		}
		return value(list)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case error:
		return nil, failure(v)
	}
	return nil, fmt.Errorf("redisstore: a reply of a kind that is not known here: %T", reply)
}

// failure is an error as [redisstore.Client] promises it.
func failure(err error) error {
	if server := redis.Error(nil); errors.As(err, &server) {
		return redisstore.ServerError(server.Error())
	}
	return fmt.Errorf("redisstore: %w", err)
}
