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

// redirectTimeout bounds the check that an address serves.
const redirectTimeout = 30 * time.Second

// Endpoint is the address of one mode, with or without /v1.
type Endpoint struct {
	Mode api.ModeState
	URL  string
}

// Redirector sends requests to one of several addresses.
type Redirector interface {
	// Redirect checks that the server at address serves the current model and sends
	// later requests there. After an error the previous address stays in use.
	Redirect(ctx context.Context, address string) error
}

// Endpoints is the driver for modes that have an address each, such as two
// frontends with different routers over one set of workers. A switch restarts
// nothing, and the caches keep their contents. It is safe for concurrent use.
type Endpoints struct {
	endpoints  []Endpoint
	redirector Redirector
	client     *http.Client
}

// NewEndpoints makes the driver. A nil client means one without credentials. An
// invalid address, or a second one for a mode, gives an [api.FieldError].
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

// Name returns "endpoints".
func (e *Endpoints) Name() string { return "endpoints" }

// Offers lists the modes that have an address.
func (e *Endpoints) Offers() []api.ModeState {
	offers := make([]api.ModeState, len(e.endpoints))
	for i, p := range e.endpoints {
		offers[i] = p.Mode
	}
	return offers
}

// Instance returns "": the router at the address chooses the instance.
func (e *Endpoints) Instance() string { return "" }

// Switch redirects the requests to the mode's address after that address has
// passed three checks: /health, where it has one, the list of models, and one
// answer. If a check fails, the previous address stays in use. A mode without an
// address gives an [api.FieldError].
func (e *Endpoints) Switch(
	ctx context.Context, _, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	if err := offered(e.Offers(), to); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, redirectTimeout, fmt.Errorf("timed out after %s", redirectTimeout))
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

// healthy fails for a server whose /health reports that it cannot serve. A server
// without /health, or with another one than Dynamo's, passes.
func (e *Endpoints) healthy(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	instances, err := Probe(ctx, address, e.client)
	var status *statusError
	switch {
	case err == nil && len(instances) == 0:
		return fmt.Errorf("its /health lists no worker with the endpoint %q", generate)
	case errors.As(err, &status) && status.code >= http.StatusInternalServerError:
		return err
	}
	return nil
}

// SelectedSource returns the source to read from at the moment. It makes a
// [Source] of several, one of which is in use at a time.
type SelectedSource func() Source

// Name returns the name of the selected source.
func (c SelectedSource) Name() string { return c().Name() }

// Fetch reads the selected source.
func (c SelectedSource) Fetch(ctx context.Context) ([]Sample, error) { return c().Fetch(ctx) }

func (c SelectedSource) explain(ctx context.Context, samples []Sample) api.Unread {
	if e, ok := c().(explainer); ok {
		return e.explain(ctx, samples)
	}
	return api.Unread{}
}
