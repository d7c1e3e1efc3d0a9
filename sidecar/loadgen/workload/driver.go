package workload

import (
	"context"

	"kvbooth/sidecar/api"
)

// Driver switches the routing mode of a cluster. Its methods are safe for
// concurrent use; no two switches run at once.
type Driver interface {
	// Name is the driver's name in the configuration.
	Name() string

	// Offers lists the modes that the cluster can be brought to.
	Offers() []api.ModeState

	// Switch brings the cluster from one mode to another, or to the same with cold
	// caches, and returns when turns may be sent. It calls report with a phase (see [api.ModeChange]) and a
	// message for the operator. Cold says that the caches were emptied; where
	// they were not, the caller makes the prefixes cold with a new nonce. A mode
	// that is not offered gives an [api.FieldError]; the end of ctx gives its error.
	Switch(ctx context.Context, from, to api.ModeState, report func(phase, message string)) (cold bool, err error)

	// Instance names the worker instance (decimal id) that the next turn must be
	// pinned to, "" to leave it to the router. It is called once a turn, concurrently.
	Instance() string
}

// Confirmer is a Driver that waits for the operator's word.
type Confirmer interface {
	// Confirm says that the operator has done what the driver asked for. It
	// gives [api.ErrConflict] where no switch is waiting.
	Confirm() error
}

// Teller is a Driver whose cluster tells which mode it is in, and may be
// switched by others, too.
type Teller interface {
	// Current asks the cluster for its mode. An error says that it cannot be
	// known at the moment.
	Current(ctx context.Context) (api.ModeState, error)
}

// Attributor is a Teller whose cluster tells who changed it.
type Attributor interface {
	// Author names who changed the cluster last, "" where it is not known.
	Author(ctx context.Context) string
}

// Describer is a Driver whose cluster's description tells what the deployment uses.
type Describer interface {
	// Features are those that it told of last; nil before its first answer. They must not be written to.
	Features() []api.Feature
}

// Simulator is a Driver whose cluster is simulated.
type Simulator interface {
	// Simulation is what the cluster told last of itself, nil before its first answer.
	Simulation() *api.Simulation
}

// Decider is a Driver whose cluster tells why its router decided as it did.
type Decider interface {
	// Decisions gives the newest decisions, newest first, at most limit. The
	// error is an [api.ErrUnavailable] where the cluster cannot be asked.
	Decisions(ctx context.Context, limit int) ([]api.RoutingDecision, error)
}
