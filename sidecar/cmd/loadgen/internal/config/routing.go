package config

import (
	"fmt"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/members"
)

// Routing returns the settings that concern the router of the target.
func (c *Config) Routing() members.Routing {
	t := c.Target
	r := members.Routing{
		Router: t.Router, WorkerHeader: t.WorkerHeader, RequestID: t.RequestID, Direct: c.Mode.direct(),
	}
	if t.Session != "" {
		r.Session = sessionOf(t.Session)
	}
	return r
}

// checkRouting refuses a session in a field that is in each request already, and headers of arms that would not be
// sent: a member gets the address of an arm, and reads headers from its own configuration.
func (c *Config) checkRouting() error {
	s := c.Routing().Session
	if _, taken := c.Request.Fields()[s.Name]; s.Kind == chat.SessionBody && taken {
		return api.Refuse("target.session", c.Target.Session, "a field that is not in request.body")
	}
	i := slices.IndexFunc(c.Mode.Served, func(a cluster.Arm) bool { return len(a.Headers) > 0 })
	if c.Members.Coordinates() && i >= 0 {
		return api.Refuse(fmt.Sprintf("arms[%d].headers", i), c.Mode.Served[i].State.Arm,
			"no headers of an arm with members, which would not send them; give each arm a url of its own")
	}
	return nil
}
