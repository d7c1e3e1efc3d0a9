package lane

import (
	"fmt"

	"kvbooth/sidecar/api"
)

// checkSettings checks every setting against its range, and against the baselines and lanes that
// exist.
func (c *Catalog) checkSettings(s api.Settings) error {
	if err := s.Check(); err != nil {
		return err
	}
	known := s.DefaultBaseline == "" || s.DefaultBaseline == api.ThisTarget
	if !known && indexOfBaseline(c.Baselines(), s.DefaultBaseline) < 0 {
		return api.Refuse("default_baseline", s.DefaultBaseline, "the name of a baseline, or empty")
	}
	return c.checkRunning(s)
}

// checkRunning refuses a limit below the concurrency of a running lane, which would end
// conversations.
func (c *Catalog) checkRunning(s api.Settings) error {
	for _, l := range c.lanes {
		state := l.State()
		if n := state.Concurrency.Target; state.Phase != api.PhaseStopped && n.Conversations() > s.MaxConcurrency {
			return api.Refuse("max_concurrency", s.MaxConcurrency,
				fmt.Sprintf("at least %v, the concurrency of lane %s; lower that first", n, l.opts.Name))
		}
	}
	return nil
}
