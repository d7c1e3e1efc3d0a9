package workload

import (
	"context"
	"errors"
	"fmt"

	"kvbooth/sidecar/api"
)

// Driver switches the routing mode of a cluster. Its methods are safe for
// concurrent use; no two switches run at once.
type Driver interface {
	// Name returns the driver's name in the configuration.
	Name() string

	// Offers returns the modes that the cluster can be switched to.
	Offers() []api.ModeState

	// Switch switches the cluster from one mode to another, or to the same with cold caches, and
	// returns when turns may be sent. It calls report with a phase (see [api.ModeChange]) and a
	// message for the operator. cold reports that the caches were emptied. If they were not, the
	// caller makes the prefixes cold with a new nonce. The error is an [api.FieldError] for a mode
	// that is not offered, or that of ctx. After an error the cluster is in the former mode, unless
	// the error is an [ErrModeUnknown] or a [ModeReporter] reports another one.
	Switch(ctx context.Context, from, to api.ModeState, report func(phase, message string)) (cold bool, err error)

	// Instance returns the worker instance (decimal id) that the next turn must be pinned to, "" to
	// leave it to the router. It is called once for each turn, concurrently.
	Instance() string
}

// ErrModeUnknown reports that a switch failed and the cluster could not be switched back.
var ErrModeUnknown = errors.New("the mode in force is unknown")

// NotSwitchedBack returns the [ErrModeUnknown] of a switch that failed because of cause, and whose roll-back to the
// former mode failed because of back.
func NotSwitchedBack(cause error, former string, back error) error {
	return fmt.Errorf("%w; switching it back to %s also failed: %w; %w", cause, former, back, ErrModeUnknown)
}

// PhaseOutput is a phase that a Driver reports for a line of a program that it runs. The line becomes an event.
const PhaseOutput = "output"

// PhaseWarning is a phase that a Driver reports for what went wrong in a switch that goes on. The message becomes an
// event, is logged as a warning, and is stored with the span that the switch is for.
const PhaseWarning = "warning"

// PhaseWaiting is the phase of a Driver that waits for the operator. The message says what to do, and becomes an event.
const PhaseWaiting = "waiting_for_operator"

// WarmSwitcher is a Driver that can switch with the caches kept, where Switch empties them.
type WarmSwitcher interface {
	// InPlace reports whether turns may be sent during SwitchWarm. None of them fails then.
	InPlace(from, to api.ModeState) bool
	// SameWorkers reports whether the same workers serve both modes, as far as is known: each finds in their caches what
	// the other has left.
	SameWorkers(a, b api.ModeState) bool
	// SwitchWarm is Switch for a change that keeps the contents of the caches where it can. cold reports that they were
	// emptied nevertheless.
	SwitchWarm(ctx context.Context, from, to api.ModeState, report func(phase, message string)) (cold bool, err error)
}

// Router is a Driver whose modes have addresses or headers of their own.
type Router interface {
	// Route returns a text that differs where the address or the headers of a mode do, and reveals no header.
	Route(mode api.ModeState) string
}

// Checker is a Driver that can say before any load whether it can switch to modes.
type Checker interface {
	// Check returns why one of the modes cannot be switched to, nil if nothing is known against it.
	Check(ctx context.Context, modes []api.ModeState) error
}

// Confirmer is a Driver that waits for the operator to confirm a switch.
type Confirmer interface {
	// Confirm confirms that the operator has done what the driver asked for. It returns
	// [api.ErrConflict] if no switch is waiting.
	Confirm() error
}

// ModeReporter is a Driver whose cluster reports its mode, and may be switched by other clients.
type ModeReporter interface {
	// Current asks the cluster for its mode. An error means that the mode is not known at the moment.
	Current(ctx context.Context) (api.ModeState, error)
}

// Attributor is a ModeReporter whose cluster records the author of changes.
type Attributor interface {
	// Author returns the author of the last change, "" if it is not known.
	Author(ctx context.Context) string
}

// Describer is a Driver whose cluster's description contains the features that the deployment uses.
type Describer interface {
	// Features returns the features of the latest description; nil before the first one. They must
	// not be modified.
	Features() []api.Feature
}

// Simulator is a Driver whose cluster is simulated.
type Simulator interface {
	// Simulation returns the cluster's latest report on itself, nil before the first one.
	Simulation() *api.Simulation
}

// Decider is a Driver whose cluster reports its router's decisions with their reasons.
type Decider interface {
	// Decisions returns the newest decisions, newest first, at most limit. The error is an
	// [api.ErrUnavailable] if the cluster cannot be asked.
	Decisions(ctx context.Context, limit int) ([]api.RoutingDecision, error)
}
