package lane

import (
	"context"

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
	messages []openai.ChatCompletionMessage
	opening  string
}

// Aside begins a conversation on a text; [Aside.End] ends it.
func (l *Lane) Aside(opening corpus.Starter) *Aside {
	l.asides.Add(1)
	l.notify()
	return &Aside{lane: l, opening: opening.Text}
}

// End is called once.
func (a *Aside) End() {
	a.lane.asides.Add(-1)
	a.lane.notify()
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
	a.messages = append(a.messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: r.Content})
	return r
}

// Text is an opening of the corpus in use: that with an id, or with none the corpus's own
// texts in turn, by a number from 0. The error is an [api.ErrNotFound].
func (l *Lane) Text(id string, number int) (corpus.Starter, error) {
	if id == "" {
		all := l.corpusInUse().Starters
		id = all[number%len(all)].ID
	}
	s, err := l.Starter(id)
	return corpus.Starter(s), err
}

// Questioner asks the lane's follow-up questions.
func (l *Lane) Questioner() corpus.Questioner { return l.opts.Questioner }
