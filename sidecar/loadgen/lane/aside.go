package lane

import (
	"context"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
)

// Aside is a conversation with the lane's target beside the workload. Nothing that the lane
// measures, counts or stores has anything of it, whether the workload runs or not; that there
// is one, its state says. One goroutine uses it.
type Aside struct {
	lane     *Lane
	stop     func(cause error)
	ended    chan struct{}
	messages []openai.ChatCompletionMessage
	opening  string
}

// Aside begins a conversation on a text; [Aside.End] ends it. A change of mode and a sweep
// call stop with the reason, and begin when the conversation has ended: stop must not wait. The
// error is that of a mode change: an [api.ErrConflict] while one is in progress or the lane is
// taken, and [api.ErrUnavailable] at the end of the process.
func (l *Lane) Aside(opening corpus.Starter, stop func(cause error)) (*Aside, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.free(); err != nil {
		return nil, err
	}
	a := &Aside{lane: l, stop: stop, ended: make(chan struct{}), opening: opening.Text}
	l.asides = append(l.asides, a)
	l.notify()
	return a, nil
}

// End is called once.
func (a *Aside) End() {
	a.lane.mu.Lock()
	defer a.lane.mu.Unlock()
	a.lane.asides = slices.DeleteFunc(a.lane.asides, func(other *Aside) bool { return other == a })
	close(a.ended)
	a.lane.notify()
}

// stopAsides stops the conversations beside the workload, and gives what is closed at their
// ends. The lock is held.
func (l *Lane) stopAsides(cause error) (ended []<-chan struct{}) {
	for _, a := range l.asides {
		a.stop(cause)
		ended = append(ended, a.ended)
	}
	return ended
}

// Turn sends the next message of the user, behind the opening text if it is the first, and
// returns when the answer has ended. What has come of it so far is in live.
func (a *Aside) Turn(ctx context.Context, id, message string, maxTokens int, live *chat.Live) chat.Result {
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
	a.messages = append(a.messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: message})
	r := a.lane.opts.Client.Do(ctx, chat.Request{
		ID: id, Messages: a.messages, MaxTokens: maxTokens, Instance: a.lane.opts.Driver.Instance(), Live: live,
	})
	a.messages = append(a.messages, openai.ChatCompletionMessage{
		Role:    openai.ChatMessageRoleAssistant,
		Content: r.Content,
	})
	return r
}

// Text is an opening of the corpus in use: that with an id, or with none the corpus's own
// texts in turn, by a number from 0. The error is an [api.ErrNotFound].
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

// Questioner asks the lane's follow-up questions.
func (l *Lane) Questioner() corpus.Questioner { return l.opts.Questioner }
