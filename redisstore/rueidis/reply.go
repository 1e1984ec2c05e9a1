package rueidis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/comporta/comporta/redisstore"
	"github.com/redis/rueidis"
)

// reply is a result as [redisstore.Client] promises it. Texts are not copied.
func reply(r rueidis.RedisResult) (any, error) {
	m, err := r.ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		return nil, failure(err)
	}
	return value(&m)
}

func value(m *rueidis.RedisMessage) (any, error) {
	switch {
	case m.IsNil():
		return nil, nil
	case m.IsInt64():
		return m.ToInt64()
	case m.IsArray():
		list, err := m.ToArray()
		if err != nil {
			return nil, err
		}
		all := make([]any, len(list))
		for i := range list {
			if all[i], err = value(&list[i]); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	text, err := m.ToString()
	if err != nil {
		return nil, failure(err)
	}
	return text, nil
}

// failure is an error as [redisstore.Client] promises it. rueidis cuts "ERR " off;
// all other codes it leaves, in capitals.
func failure(err error) error {
	var server *rueidis.RedisError
	if !errors.As(err, &server) {
		return fmt.Errorf("redisstore: %w", err)
	}
	text := server.Error()
	code, _, _ := strings.Cut(text, " ")
	if code == "" || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		text = "ERR " + text
	}
	return redisstore.ServerError(text)
}
