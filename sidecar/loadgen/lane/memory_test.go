package lane

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"kvbooth/sidecar/api"
)

// memory is a Store in memory.
type memory struct {
	mu            sync.Mutex
	order         []string // ids of conversations
	conversations map[string]api.Conversation
	turns         []api.Turn
	steps         []api.StepRecord // every state that was saved
	events        []api.Event
	settings      *api.Settings
	baselines     map[string]string // JSON by name
	broken        error             // result of every method with an error
	lost          int64

	held chan struct{} // SaveTurn blocks until it is closed; nil for no block
}

var _ Store = (*memory)(nil)

func newMemory() *memory {
	return &memory{conversations: map[string]api.Conversation{}, baselines: map[string]string{}}
}

// locked calls f with the lock held and returns the error that a test set.
func (m *memory) locked(f func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	return m.broken
}

// written is locked for a change that a broken store does not make.
func (m *memory) written(f func()) error {
	return m.locked(func() {
		if m.broken == nil {
			f()
		}
	})
}

func (m *memory) SaveConversation(c api.Conversation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.conversations[c.ID]; !known {
		m.order = append(m.order, c.ID)
	}
	m.conversations[c.ID] = c
}

func (m *memory) SaveTurn(t api.Turn) {
	m.mu.Lock()
	m.turns = append(m.turns, t)
	held := m.held
	m.mu.Unlock()
	if held != nil {
		<-held
	}
}

func (m *memory) SaveStep(s api.StepRecord) { _ = m.locked(func() { m.steps = append(m.steps, s) }) }

func (m *memory) LostTurns() int64 { return m.lost }

func (m *memory) Status() api.StoreStatus { return api.StoreStatus{Path: "memory", OK: true} }

func (m *memory) SaveEvent(_ context.Context, e api.Event) (api.Event, error) {
	return e, m.locked(func() { m.events = append(m.events, e) })
}

func (m *memory) SaveSettings(_ context.Context, s api.Settings) error {
	return m.written(func() { m.settings = &s })
}

func (m *memory) Settings(context.Context) (api.Settings, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.settings == nil {
		return api.Settings{}, false, m.broken
	}
	return *m.settings, true, m.broken
}

// SaveBaseline keeps JSON, so that a row comes back as from a file.
func (m *memory) SaveBaseline(_ context.Context, b api.Baseline) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return m.written(func() { m.baselines[b.Name] = string(data) })
}

func (m *memory) DeleteBaseline(_ context.Context, name string) error {
	return m.written(func() { delete(m.baselines, name) })
}

func (m *memory) Baselines(context.Context) ([]api.Baseline, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []api.Baseline
	for _, text := range m.baselines {
		var b api.Baseline
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, m.broken
}

func (m *memory) Conversation(_ context.Context, id string) (api.Conversation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.conversations[id]
	if !ok {
		return c, fmt.Errorf("%w: no conversation %s", api.ErrNotFound, id)
	}
	for _, t := range m.turns {
		if t.Conversation == id {
			c.Turns = append(c.Turns, t)
		}
	}
	return c, nil
}

func (m *memory) breaks(err error) { _ = m.locked(func() { m.broken = err }) }

// hold makes SaveTurn block until release is called. release is idempotent.
func (m *memory) hold() (release func()) {
	held := make(chan struct{})
	_ = m.locked(func() { m.held = held })
	return sync.OnceFunc(func() {
		_ = m.locked(func() { m.held = nil })
		close(held)
	})
}

func (m *memory) allTurns() (all []api.Turn) {
	_ = m.locked(func() { all = slices.Clone(m.turns) })
	return all
}

func (m *memory) allConversations() (all []api.Conversation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.order {
		all = append(all, m.conversations[id])
	}
	return all
}

// lastSteps returns the last state of each step, in order of the first states.
func (m *memory) lastSteps() []api.StepRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []api.StepRecord
	for _, s := range m.steps {
		i := slices.IndexFunc(all, func(o api.StepRecord) bool { return o.ID == s.ID })
		if i < 0 {
			all = append(all, s)
		} else {
			all[i] = s
		}
	}
	return all
}

// eventLines returns the events so far, each as "kind by: text".
func (m *memory) eventLines() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	lines := []string{}
	for _, e := range m.events {
		lines = append(lines, fmt.Sprintf("%s %s: %s", e.Kind, e.By, e.Text))
	}
	return lines
}

// own returns the stored baseline of this target.
func (m *memory) own() (b api.Baseline) {
	_ = m.locked(func() { _ = json.Unmarshal([]byte(m.baselines[api.ThisTarget]), &b) }) // fails where there is none
	return b
}

// edit changes the stored baseline of this target.
func (m *memory) edit(change func(*api.Baseline)) {
	b := m.own()
	change(&b)
	_ = m.SaveBaseline(context.Background(), b)
}
