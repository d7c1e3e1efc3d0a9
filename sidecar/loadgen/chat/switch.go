package chat

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"

	"kvbooth/sidecar/api"
)

// Switch sends requests to one of several addresses of one target, such as two frontends with different routers over
// the same workers. It is safe for concurrent use. A request in progress stays at the address that it was sent to.
type Switch struct {
	opts    Options
	root    string
	clients []*Client
	current atomic.Pointer[Client]
}

// NewSwitch returns a Switch with a client for each URL. All clients share the other options; opts.URL identifies the
// target, whichever address is in use. Requests go to the first URL until [Switch.Redirect]. The error is an
// [api.FieldError].
func NewSwitch(opts Options, urls ...string) (*Switch, error) {
	whole, err := api.ParseTarget(opts.URL)
	if err != nil {
		return nil, err
	}
	s := &Switch{opts: opts, root: api.TargetRoot(whole).String()}
	for _, address := range urls {
		opts.URL = address
		c, err := New(opts)
		if bad := new(api.FieldError); errors.As(err, &bad) && bad.Field == "target.url" {
			return nil, &api.FieldError{Field: "mode.endpoints", Value: bad.Value, Allowed: bad.Allowed}
		}
		if err != nil {
			return nil, err
		}
		if s.find(c.base) == nil {
			s.clients = append(s.clients, c)
		}
	}
	if len(s.clients) == 0 {
		return nil, &api.FieldError{Field: "mode.endpoints", Value: "no addresses", Allowed: "one for each mode"}
	}
	s.current.Store(s.clients[0])
	return s, nil
}

// find returns the client of an address, or nil.
func (s *Switch) find(u *url.URL) *Client {
	if i := slices.IndexFunc(s.clients, func(c *Client) bool { return *c.base == *u }); i >= 0 {
		return s.clients[i]
	}
	return nil
}

// Redirect checks that the server at an address serves the model in use, and sends later requests there. On an error,
// requests continue to go to the previous address. The check requires one answer under the model's name and, where the
// options name no model, that the server lists it, if the server lists models.
func (s *Switch) Redirect(ctx context.Context, address string) error {
	u, err := api.ParseTarget(address)
	if err != nil {
		return err
	}
	next := s.find(u)
	if next == nil {
		return &api.FieldError{Field: "mode.endpoints", Value: quote(address), Allowed: "an address of the " +
			"configuration"}
	}
	if s.opts.Model == "" {
		if err := next.takeModel(ctx, s.Model()); err != nil {
			return err
		}
	}
	if failure := next.Probe(ctx); failure != nil {
		return failure
	}
	s.current.Store(next)
	return nil
}

// takeModel sets the model that another server listed, unless this server lists only others.
func (c *Client) takeModel(ctx context.Context, model string) error {
	listed, failure := c.Models(ctx)
	switch {
	case failure != nil && !failure.noList():
		return failure
	case failure == nil && model != "" && !slices.Contains(listed, model):
		return fmt.Errorf("%s serves %q, not the model in use, %q", c.Root(), listed, model)
	case model != "":
		c.ext.setModel(model)
	}
	return nil
}

// Endpoint returns the address in use, without /v1.
func (s *Switch) Endpoint() string { return s.current.Load().Root() }

// Root returns the address that identifies the target, whichever address is in use.
func (s *Switch) Root() string { return s.root }

// Do calls [Client.Do] at the address in use.
func (s *Switch) Do(ctx context.Context, req Request) Result { return s.current.Load().Do(ctx, req) }

// Probe calls [Client.Probe] at the address in use.
func (s *Switch) Probe(ctx context.Context) *Error { return s.current.Load().Probe(ctx) }

// Models calls [Client.Models] at the address in use.
func (s *Switch) Models(ctx context.Context) ([]string, *Error) {
	return s.current.Load().Models(ctx)
}

// Model returns the model in use, or "" before a probe.
func (s *Switch) Model() string { return s.current.Load().Model() }

// Probes returns the sum of [Client.Probes] over all addresses.
func (s *Switch) Probes() (n int64) {
	for _, c := range s.clients {
		n += c.Probes()
	}
	return n
}

// Extensions returns the extensions in use at the address in use.
func (s *Switch) Extensions() map[string]bool { return s.current.Load().Extensions() }

// Close closes the idle connections to all addresses.
func (s *Switch) Close() {
	for _, c := range s.clients {
		c.Close()
	}
}
