package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"kvbooth/sidecar/api"
)

// Endpoint is an address of a target with headers of its own.
type Endpoint struct {
	Name    string            // unique; [Switch.Redirect] takes it
	URL     string            // with or without /v1
	Field   string            // the setting with URL, which messages name; empty: target.url
	Headers map[string]string // by canonical name; they replace those of the options
	Own     *Options          // the options of this endpoint without URL and Field; nil: those of the switch
}

// Switch sends requests to one of several endpoints of one target, such as two frontends with different routers over
// the same workers. It is safe for concurrent use. A request in progress stays at the endpoint that it was sent to.
type Switch struct {
	opts    Options
	root    string
	clients []*Client
	byName  map[string]*Client // several names may share a client
	current atomic.Pointer[named]
}

// named is a client with the name of its endpoint.
type named struct {
	*Client
	name string
}

// NewSwitch returns a Switch with a client for each distinct endpoint. All clients share the other options; opts.URL
// identifies the target, whichever endpoint is in use. Requests go to the first endpoint until [Switch.Redirect]. The
// error is an [api.FieldError].
func NewSwitch(opts Options, endpoints ...Endpoint) (*Switch, error) {
	whole, err := api.ParseTarget(opts.URL)
	if err != nil {
		return nil, err
	}
	s := &Switch{opts: opts, root: api.TargetRoot(whole).String(), byName: map[string]*Client{}}
	for i, e := range endpoints {
		c, err := s.client(endpoints[:i], e)
		if err != nil {
			return nil, err
		}
		s.byName[e.Name] = c
	}
	if len(s.clients) == 0 {
		return nil, api.Refuse("mode.endpoints", "no addresses", "one for each mode")
	}
	s.current.Store(&named{s.clients[0], endpoints[0].Name})
	return s, nil
}

// client returns the client of an earlier endpoint with the same address and headers, or makes one.
func (s *Switch) client(earlier []Endpoint, e Endpoint) (*Client, error) {
	for _, other := range earlier {
		if other.URL == e.URL && maps.Equal(other.Headers, e.Headers) && other.Own == nil && e.Own == nil {
			return s.byName[other.Name], nil
		}
	}
	opts := s.opts
	if e.Own != nil {
		opts = *e.Own
	}
	opts.URL, opts.Field = e.URL, e.Field
	opts.Access.Headers = maps.Clone(opts.Access.Headers)
	if len(e.Headers) > 0 && opts.Access.Headers == nil {
		opts.Access.Headers = map[string]string{}
	}
	maps.Copy(opts.Access.Headers, e.Headers)
	c, err := New(opts)
	if bad := new(api.FieldError); errors.As(err, &bad) && bad.Field == "target.url" {
		return nil, api.Refuse(cmp.Or(e.Field, "mode.endpoints"), bad.Value, bad.Allowed)
	}
	if err == nil {
		s.clients = append(s.clients, c)
	}
	return c, err
}

// Redirect checks that the server at an endpoint serves the model in use, and sends later requests there. On an error,
// requests continue to go to the previous endpoint. The check requires some answers in a row under the model's name, at
// least one, and, where the options name no model, that the server lists it, if the server lists models.
func (s *Switch) Redirect(ctx context.Context, name string, answers int) error {
	next, err := s.check(ctx, name, answers)
	if err == nil {
		s.current.Store(&named{next, name})
	}
	return err
}

// Check makes the checks of [Switch.Redirect] with one answer, and sends no later request there.
func (s *Switch) Check(ctx context.Context, name string) error {
	_, err := s.check(ctx, name, 1)
	return err
}

func (s *Switch) check(ctx context.Context, name string, answers int) (*Client, error) {
	next := s.byName[name]
	if next == nil {
		return nil, api.Refuse("mode.endpoints", quote(name), "an endpoint of the configuration")
	}
	if next.opts.Model == "" {
		model := s.Model()
		if s.current.Load().opts.Model != "" { // another endpoint's own name for the model
			model = ""
		}
		if err := next.takeModel(ctx, model); err != nil {
			return nil, err
		}
	}
	for range max(1, answers) {
		if failure := next.Probe(ctx); failure != nil {
			return nil, failure
		}
	}
	return next, nil
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

// InUse returns the name of the endpoint in use.
func (s *Switch) InUse() string { return s.current.Load().name }

// Root returns the address that identifies the target, whichever address is in use.
func (s *Switch) Root() string { return s.root }

// Do calls [Client.Do] at the address in use.
func (s *Switch) Do(ctx context.Context, req Request) Result { return s.current.Load().Do(ctx, req) }

// Plan calls [Client.Plan] for all addresses.
func (s *Switch) Plan() (isNew bool) {
	for _, c := range s.clients {
		isNew = c.Plan() || isNew
	}
	return isNew
}

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

// Recognized calls [Client.Recognized] at the address in use.
func (s *Switch) Recognized() Recognized { return s.current.Load().Recognized() }

// Extensions returns the extensions in use at the address in use.
func (s *Switch) Extensions() map[string]bool { return s.current.Load().Extensions() }

// Close closes the idle connections to all addresses.
func (s *Switch) Close() {
	for _, c := range s.clients {
		c.Close()
	}
}
