package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

var _ workload.Driver = (*Endpoints)(nil)

// redirectPatience is how long an address may take to show that it serves.
const redirectPatience = 30 * time.Second

// Endpoint is the address of one mode, with or without /v1.
type Endpoint struct {
	Mode api.ModeState
	URL  string
}

// Redirector sends requests to one of several addresses.
type Redirector interface {
	// Redirect makes sure that the server at an address serves what is served now, and
	// has the requests from then on go there. After an error they go where they went.
	Redirect(ctx context.Context, address string) error
}

// Endpoints is the driver for modes that are served at an address each, such as
// two frontends with different routers over one set of workers. It restarts
// nothing, and the caches keep what they hold. It is safe for concurrent use.
type Endpoints struct {
	endpoints  []Endpoint
	redirector Redirector
	client     *http.Client
}

// NewEndpoints makes the driver. A nil client means one without credentials. The
// error is an [api.FieldError]: an address that is none, or a mode with two.
func NewEndpoints(endpoints []Endpoint, r Redirector, client *http.Client) (*Endpoints, error) {
	seen := map[api.ModeState]bool{}
	for _, e := range endpoints {
		if _, err := httpURL("mode.endpoints", e.URL); err != nil {
			return nil, err
		}
		if seen[e.Mode] {
			return nil, &api.FieldError{
				Field: "mode.endpoints", Value: "a second address for " + describe(e.Mode),
				Allowed: "one for each mode",
			}
		}
		seen[e.Mode] = true
	}
	return &Endpoints{endpoints: endpoints, redirector: r, client: client}, nil
}

// Name is endpoints.
func (e *Endpoints) Name() string { return "endpoints" }

// Offers are the modes that have an address.
func (e *Endpoints) Offers() []api.ModeState {
	offers := make([]api.ModeState, len(e.endpoints))
	for i, p := range e.endpoints {
		offers[i] = p.Mode
	}
	return offers
}

// Instance is empty: the router at the address decides.
func (e *Endpoints) Instance() string { return "" }

// Switch redirects the requests to the mode's address once that has shown that it
// serves: its /health, where it has one, its list of models, and one answer.
// Where it does not, they go where they went. It gives an [api.FieldError] for a
// mode without an address.
func (e *Endpoints) Switch(
	ctx context.Context, _, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	if err := offered(e.Offers(), to); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, redirectPatience, fmt.Errorf("timed out after %s", redirectPatience))
	defer cancel()
	address := e.address(to)
	report("switching", "asking "+address+" whether it serves")
	err = e.healthy(ctx, address)
	if err == nil {
		err = e.redirector.Redirect(ctx, address)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return false, fmt.Errorf("%s, the address of %s: %w", address, to.Name(), context.Cause(ctx))
	case err != nil:
		return false, fmt.Errorf("%s, the address of %s, cannot serve: %w", address, to.Name(), err)
	}
	report("switching", "turns go to "+address)
	return false, nil
}

func (e *Endpoints) address(mode api.ModeState) string {
	for _, p := range e.endpoints {
		if p.Mode == mode {
			return p.URL
		}
	}
	return ""
}

// healthy refuses a server that says itself that it cannot serve. What has no
// /health, or none of a Dynamo's, must show it in another way.
func (e *Endpoints) healthy(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	instances, err := Probe(ctx, address, e.client)
	var said *answered
	switch {
	case err == nil && len(instances) == 0:
		return fmt.Errorf("its /health lists no worker with the endpoint %q", generate)
	case errors.As(err, &said) && said.code >= http.StatusInternalServerError:
		return err
	}
	return nil
}

// Chosen reads from the source that is in use at the moment.
type Chosen func() Source

// Name is that of the source in use.
func (c Chosen) Name() string { return c().Name() }

// Fetch reads the source in use.
func (c Chosen) Fetch(ctx context.Context) ([]Sample, error) { return c().Fetch(ctx) }

func (c Chosen) explain(ctx context.Context, samples []Sample) api.Unread {
	if e, ok := c().(explainer); ok {
		return e.explain(ctx, samples)
	}
	return api.Unread{}
}
