package config

import (
	"fmt"
	"maps"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// Routing returns the settings that concern the router of the target.
func (c *Config) Routing() chat.Routing {
	r := c.Target.Routing
	r.Direct = c.Mode.direct()
	return r
}

// checkRouting refuses a session in a field or header that is in each request already, and headers of arms that would
// not be sent: a member gets the address of an arm, and reads headers from its own configuration.
func (c *Config) checkRouting() error {
	fields := map[string]*Config{"target.": c}
	for i, a := range c.Mode.Served {
		fields[fmt.Sprintf("arms[%d].", i)], _ = c.At(a)
	}
	for _, field := range slices.Backward(slices.Sorted(maps.Keys(fields))) {
		at := fields[field]
		s := at.Target.Session
		if _, taken := c.Request.Fields()[s.Name]; s.Kind == chat.SessionBody && taken {
			return api.Refuse(field+"session", at.Target.Session, "a field that is not in request.body")
		}
		if err := at.checkReplaced(s); err != nil {
			return err
		}
	}
	if !c.Members.Coordinates() {
		return nil
	}
	for i, a := range c.Mode.arms {
		switch {
		case len(a.Headers) > 0:
			return api.Refuse(fmt.Sprintf("arms[%d].headers", i), a.Name,
				"no headers of an arm with members, which would not send them; give each arm a url of its own")
		case a.own():
			return api.Refuse(fmt.Sprintf("arms[%d]", i), a.Name,
				"no model, key, router, session or other field of target of an arm with members, which have those of target")
		}
	}
	return nil
}

// checkReplaced refuses headers that a session or the request id replaces in each request.
func (c *Config) checkReplaced(s chat.Session) error {
	type section struct {
		field   string
		headers map[string]string
	}
	sections := []section{
		{"target.headers", c.Target.Opened.Headers},
		{"twin.target.headers", c.Twin.Target.Opened.Headers},
	}
	for i, a := range c.Mode.Served {
		sections = append(sections, section{fmt.Sprintf("arms[%d].headers", i), a.Headers})
	}
	for _, of := range sections {
		if _, taken := of.headers[s.Name]; taken && s.Kind != chat.SessionBody {
			return api.Refuse("target.session", c.Target.Session, "a header that is not in "+of.field)
		}
		if _, taken := of.headers[chat.RequestIDHeader]; taken && c.Target.RequestID != "off" {
			return api.Refuse(of.field, chat.RequestIDHeader, "leave it out, or set target.request_id to off; otherwise "+
				"the id of the request replaces it")
		}
	}
	return nil
}
