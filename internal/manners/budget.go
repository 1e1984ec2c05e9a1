package manners

type budget struct{}

type throttle struct{}
