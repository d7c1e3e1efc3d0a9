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
	// the error is an [ErrModeUnknown] or [Abilities.Current] reports another one.
	Switch(ctx context.Context, from, to api.ModeState, report func(phase, message string)) (cold bool, err error)

	// Abilities returns what else the driver can do. It is always the same.
	Abilities() Abilities
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

// Abilities are what some drivers can do. A nil function is an ability that a driver lacks. The functions are safe for
// concurrent use.
type Abilities struct {
	// Instance returns the worker instance (decimal id) that the next turn must be pinned to, "" to
	// leave it to the router. It is called once for each turn. nil leaves every turn to the router.
	Instance func() string
	// Instances returns the instances that Instance names in rotation; nil: the router chooses.
	Instances func() []string

	// SwitchWarm is [Driver].Switch for a change that keeps the contents of the caches where it can, where Switch empties
	// them. cold reports that they were emptied nevertheless. Drivers with it have InPlace and SameWorkers.
	SwitchWarm func(ctx context.Context, from, to api.ModeState, report func(phase, message string)) (cold bool, err error)
	// InPlace reports whether turns may be sent during SwitchWarm. None of them fails then.
	InPlace func(from, to api.ModeState) bool
	// SameWorkers reports whether the same workers serve both modes, as far as is known: each finds in their caches what
	// the other has left.
	SameWorkers func(a, b api.ModeState) bool

	// Renew is [Driver].Switch with all pods restarted, also where the mode stays. It restores the mode after a sweep;
	// nil: Switch does, and a mode that stays needs nothing.
	Renew func(ctx context.Context, from, to api.ModeState, report func(phase, message string)) (cold bool, err error)

	// Route returns a text that differs where the address or the headers of a mode do, and reveals no header.
	Route func(mode api.ModeState) string
	// Check returns before any load why one of the modes cannot be switched to, nil if nothing is known against it.
	Check func(ctx context.Context, modes []api.ModeState) error
	// Confirm confirms that the operator has done what the driver asked for. It returns
	// [api.ErrConflict] if no switch is waiting. Drivers with it do not know the mode by themselves.
	Confirm func() error
	// Current asks the cluster, which other clients may switch, for its mode. An error means that the mode is not known at
	// the moment.
	Current func(ctx context.Context) (api.ModeState, error)
	// Author returns the author of the cluster's last change, "" if it is not known.
	Author func(ctx context.Context) string

	// Features returns the features that the cluster's latest description contains; nil before the first one. They must
	// not be modified.
	Features func() []api.Feature
	// Simulation returns a simulated cluster's latest report on itself, nil before the first one.
	Simulation func() *api.Simulation
	// Decisions returns the router's newest decisions with their reasons, newest first, at most limit. The error is an
	// [api.ErrUnavailable] if the cluster cannot be asked.
	Decisions func(ctx context.Context, limit int) ([]api.RoutingDecision, error)
}

// Always returns true. It is the InPlace or SameWorkers of drivers to which all modes are alike.
func Always(_, _ api.ModeState) bool { return true }
