package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// Manual is the driver for a cluster that only an operator can switch. It reports
// the steps and waits for Confirm. It is safe for concurrent use.
type Manual struct {
	offers []api.ModeState

	mu      sync.Mutex
	waiting chan struct{} // closed by Confirm; nil while no switch waits
}

// NewManual makes a driver that offers the given modes.
func NewManual(offers []api.ModeState) *Manual {
	return &Manual{offers: slices.Clone(offers)}
}

// Name returns "manual".
func (m *Manual) Name() string { return "manual" }

// Offers lists the modes that the operator can bring about.
func (m *Manual) Offers() []api.ModeState { return slices.Clone(m.offers) }

// Abilities returns Confirm.
func (m *Manual) Abilities() workload.Abilities { return workload.Abilities{Confirm: m.Confirm} }

// Switch reports the steps and waits for Confirm. The caches of a Dynamo are empty
// afterwards, since the steps restart the workers. Those of an arm may not be, so it
// returns at once for the arm in force. It gives an [api.FieldError] for a mode that
// is not offered, [api.ErrConflict] while another switch waits, and the cause of
// ctx's end, after which Confirm has no effect on it.
func (m *Manual) Switch(
	ctx context.Context, from, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	if err := offered(m.offers, to); err != nil {
		return false, err
	}
	if to.Arm != "" && from == to {
		return false, nil
	}
	confirmed, err := m.wait()
	if err != nil {
		return false, err
	}
	defer m.release(confirmed)
	report(workload.PhaseWaiting, instructions(from, to))
	select {
	case <-confirmed:
		return to.Arm == "", nil
	case <-ctx.Done():
		return false, fmt.Errorf("the switch to %s was not confirmed: %w", to.Name(), context.Cause(ctx))
	}
}

// Confirm ends the wait of Switch. It gives [api.ErrConflict] where no switch waits.
func (m *Manual) Confirm() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting == nil {
		return fmt.Errorf("%w: no mode change waits for the operator", api.ErrConflict)
	}
	close(m.waiting)
	m.waiting = nil
	return nil
}

func (m *Manual) wait() (<-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting != nil {
		return nil, fmt.Errorf("%w: another mode change waits for the operator", api.ErrConflict)
	}
	m.waiting = make(chan struct{})
	return m.waiting, nil
}

// release ends the wait of one switch. It has no effect after Confirm, or on a
// switch that began later.
func (m *Manual) release(own <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting == own {
		m.waiting = nil
	}
}

// instructions describes the steps that switch a Dynamo from one mode to another. The steps to an arm are the user's
// own.
func instructions(from, to api.ModeState) string {
	if to.Arm != "" {
		return "Switch to " + to.Arm + ". Confirm when it serves."
	}
	var steps []string
	if to.Mode != from.Mode {
		steps = append(steps, "set DYN_ROUTER_MODE="+routerMode(to.Mode)+" on the frontend")
	}
	if to.Speculation != from.Speculation {
		steps = append(steps, fmt.Sprintf("configure the workers for speculation %q", to.Speculation))
	}
	steps = append(steps, "restart the frontend and the workers, so that the caches start empty")
	return "To switch to " + to.Name() + ": " + strings.Join(steps, "; ") +
		". Confirm when all workers are ready."
}

// routerMode spells a mode as Dynamo does.
func routerMode(m api.Mode) string { return strings.ReplaceAll(string(m), "_", "-") }

// describe writes a mode or an arm as in a request, for errors.
func describe(m api.ModeState) string {
	if m.Arm != "" {
		return m.Arm
	}
	if m.Speculation == "" || m.Speculation == api.SpeculationNotRecorded {
		return string(m.Mode)
	}
	return fmt.Sprintf("%s with speculation %s", m.Mode, m.Speculation)
}

// offered gives an [api.FieldError] for a mode that is not among the offers.
func offered(offers []api.ModeState, to api.ModeState) error {
	if slices.Contains(offers, to) {
		return nil
	}
	var allowed []string
	for _, o := range offers {
		allowed = append(allowed, describe(o))
	}
	field := "mode"
	if to.Arm != "" {
		field = "arm"
	}
	return api.Refuse(field, describe(to), strings.Join(allowed, ", "))
}
