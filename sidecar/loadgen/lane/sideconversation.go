package lane

import (
	"context"
	"slices"

	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
)

// SideConversation is a conversation with the lane's target outside of the workload. The lane
// does not measure, count or store it; the lane's state only shows that there is one. It is not
// safe for concurrent use.
type SideConversation struct {
	lane     *Lane
	stop     func(cause error)
	ended    chan struct{}
	messages []chat.Message
	opening  string
}

// SideConversation begins a conversation on a text; [SideConversation.End] ends it. A mode change
// and a sweep call stop with the reason, and begin when the conversation has ended: stop must not
// block. The error is that of a mode change: an [api.ErrConflict] while one is in progress or the
// lane is taken, and [api.ErrUnavailable] at the end of the process.
func (l *Lane) SideConversation(opening corpus.Starter, stop func(cause error)) (*SideConversation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.checkFree(); err != nil {
		return nil, err
	}
	a := &SideConversation{lane: l, stop: stop, ended: make(chan struct{}), opening: opening.Text}
	l.sideConversations = append(l.sideConversations, a)
	l.notify()
	return a, nil
}

// End ends the conversation. It is called once.
func (a *SideConversation) End() {
	l := a.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sideConversations = slices.DeleteFunc(l.sideConversations, func(c *SideConversation) bool { return c == a })
	close(a.ended)
	l.notify()
}

// stopSideConversations stops all side conversations. It returns their channels, each of which is
// closed when its conversation has ended. The lock is held.
func (l *Lane) stopSideConversations(cause error) (ended []<-chan struct{}) {
	for _, a := range l.sideConversations {
		a.stop(cause)
		ended = append(ended, a.ended)
	}
	return ended
}

// Turn sends the user's next message, preceded by the opening text in the first turn, and returns
// when the answer has ended. Meanwhile live holds the part of the answer that has arrived.
func (a *SideConversation) Turn(ctx context.Context, id, message string, maxTokens int, live *chat.Live) chat.Result {
	if err := a.lane.target.probe(ctx); err != nil {
		r := chat.Result{Err: err}
		if ctx.Err() != nil {
			r = chat.Result{Cancelled: true}
		}
		return r
	}
	if len(a.messages) == 0 {
		a.lane.mu.Lock()
		nonce := a.lane.nonce
		a.lane.mu.Unlock()
		message = workload.FirstMessage(nonce, a.opening, message)
	}
	a.messages = append(a.messages, chat.Message{Role: chat.RoleUser, Text: message})
	req := chat.Request{ID: id, Messages: a.messages, MaxTokens: maxTokens, Live: live}
	if instance := a.lane.opts.Driver.Abilities().Instance; instance != nil {
		req.Instance = instance()
	}
	r := a.lane.opts.Client.Do(ctx, req)
	a.messages = append(a.messages, chat.Message{
		Role: chat.RoleAssistant,
		Text: r.Content,
	})
	return r
}

// Text returns the opening of the corpus in use that has the id. Without an id, it returns the
// corpus's own openings in turn, by a number from 0. The error is an [api.ErrNotFound].
func (l *Lane) Text(id string, number int) (corpus.Starter, error) {
	if id == "" {
		all := l.corpusInUse().Starters
		id = all[number%len(all)].ID
	}
	if _, err := l.Starter(id); err != nil {
		return corpus.Starter{}, err
	}
	s, _ := l.corpusInUse().Find(l.opts.Seed, id)
	return s, nil
}

// Questioner returns the source of the lane's follow-up questions.
func (l *Lane) Questioner() corpus.Questioner { return l.opts.Questioner }
