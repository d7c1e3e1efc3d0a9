// Package enduser plays the user of a conversation with a model of its own: it
// has an OpenAI-compatible server ask the follow-up questions. Where that server
// fails, the built-in questioner asks, and the failure is counted by its cause,
// so that no turn ever fails for want of a question.
package enduser

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/access"
	"kvbooth/sidecar/loadgen/breaker"
	"kvbooth/sidecar/loadgen/corpus"
)

const (
	defaultTimeout = 10 * time.Second
	maxAttempts    = 3                      // for one question
	firstPause     = 200 * time.Millisecond // between two of them, doubled each time
	maxBody        = 1 << 20                // bytes of an answer
	maxQuestion    = 300                    // characters
	maxTokens      = 120                    // of an answer: a question and what may stand around it
	maxThought     = 2000                   // tokens of an answer with the thoughts of a model that has some
)

// A server that fails so often in a row is left alone for a while, so that a dead
// one does not delay every conversation by the time limit.
const (
	tolerated  = 3
	leastBreak = time.Second // doubled with each failure after it
	mostBreak  = 30 * time.Second
)

// Options say which server asks.
type Options struct {
	URL    string // as [api.ParseTarget] takes it
	Model  string // empty: the first that the server lists
	APIKey string // empty: none is sent
	access.Access
	Timeout time.Duration // of one question with all its attempts; 0 means 10 s
	Log     *slog.Logger  // nil discards
}

// Questioner asks through a model. It is safe for concurrent use.
type Questioner struct {
	opts      Options
	root      string // the server, without /v1
	client    *openai.Client
	transport *http.Transport
	builtin   corpus.BuiltinQuestioner
	breaker   breaker.Breaker

	mu        sync.Mutex
	model     string // in use; empty: not known yet
	byModel   int64
	fallbacks map[api.FollowupCause]int64
	asking    int
	problem   string
}

var (
	_ corpus.Questioner = (*Questioner)(nil)
	_ corpus.Reporter   = (*Questioner)(nil)
)

// New makes a questioner; nothing is asked yet. The error is an [api.FieldError].
func New(opts Options) (*Questioner, error) {
	base, err := api.ParseTarget(opts.URL)
	if bad := new(api.FieldError); errors.As(err, &bad) {
		return nil, &api.FieldError{Field: "followup.url", Value: bad.Value, Allowed: bad.Allowed}
	}
	if opts.Timeout == 0 {
		opts.Timeout = defaultTimeout
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	transport, err := opts.Transport()
	if bad := new(api.FieldError); errors.As(err, &bad) {
		return nil, api.Refuse("followup."+bad.Field, bad.Value, bad.Allowed)
	}
	transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = 32, 4*time.Second
	q := &Questioner{
		opts: opts, root: api.TargetRoot(base).String(), model: opts.Model,
		transport: transport, fallbacks: map[api.FollowupCause]int64{},
		breaker: breaker.Breaker{Failures: tolerated, Least: leastBreak, Most: mostBreak},
	}
	query := base.RawQuery
	base.RawQuery = ""
	q.client = q.newClient(base.String(), access.Transport{Base: transport, Access: opts.Access, Query: query})
	return q, nil
}

func (q *Questioner) newClient(base string, transport http.RoundTripper) *openai.Client {
	config := openai.DefaultConfig(q.opts.APIKey)
	config.BaseURL = base
	config.HTTPClient = &http.Client{
		Transport:     bounded{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return openai.NewClientWithConfig(config)
}

// bounded ends the body of an answer that is too long for one.
type bounded struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(req)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxBody), res.Body}
	}
	return res, err
}

// Close closes the idle connections. Questions under way end by their contexts.
func (q *Questioner) Close() { q.transport.CloseIdleConnections() }

// Name says which model asks. It does not change, whatever the server tells later.
func (q *Questioner) Name() string {
	if q.opts.Model != "" {
		return "model " + q.opts.Model
	}
	return "model at " + q.root
}

// Kind is that of a model.
func (q *Questioner) Kind() api.QuestionerKind { return api.QuestionerModel }

// Report gives the counts, and what keeps the model from asking now.
func (q *Questioner) Report() api.FollowupStatus {
	q.mu.Lock()
	defer q.mu.Unlock()
	return api.FollowupStatus{
		Name: q.Name(), URL: q.root, Model: q.model, ByModel: q.byModel,
		Fallbacks: maps.Clone(q.fallbacks), Asking: q.asking, Problem: q.problem,
	}
}

// Open asks like the built-in questioner: the first request comes with the
// article, before any answer that a model could ask about.
func (q *Questioner) Open(r *rand.Rand, topic string) string { return q.builtin.Open(r, topic) }

// Follow has the model ask about the last answer, within the time limit, and asks
// like the built-in questioner where that fails. Where ctx ends it gives a
// question at once, and counts nothing.
func (q *Questioner) Follow(ctx context.Context, r *rand.Rand, topic string, asked []string, answer string) string {
	question, cause := q.ask(ctx, topic, asked, answer)
	switch {
	case cause == "":
		return question
	case ctx.Err() == nil:
		q.mu.Lock()
		q.fallbacks[cause]++
		q.mu.Unlock()
	}
	return q.builtin.Follow(ctx, r, topic, asked, answer)
}

// ask gives the model's question, or why there is none.
func (q *Questioner) ask(ctx context.Context, topic string, asked []string, answer string) (string, api.FollowupCause) {
	began := time.Now()
	if !q.breaker.Admit(began) {
		return "", api.FollowupPaused
	}
	q.waits(+1)
	defer q.waits(-1)
	limited, cancel := context.WithTimeout(ctx, q.opts.Timeout)
	defer cancel()
	question, err := q.attempts(limited, prompt(topic, asked, answer))
	switch {
	case ctx.Err() != nil: // nobody waits for it any more
		q.breaker.Release(time.Now())
		return "", api.FollowupTimeout
	case err != nil:
		q.breaker.Failure(time.Now(), began, 0)
		return "", q.failed(err)
	}
	q.breaker.Success()
	if slices.ContainsFunc(asked, func(a string) bool { return strings.EqualFold(a, question) }) {
		return "", api.FollowupRepeated
	}
	q.succeeded()
	return question, ""
}

// attempts tries until there is a question, with growing pauses between.
func (q *Questioner) attempts(ctx context.Context, messages []openai.ChatCompletionMessage) (question string, err error) {
	pause := firstPause
	for n := 1; ; n++ {
		question, err = q.once(ctx, messages)
		if err == nil || n == maxAttempts || !passes(err) || !sleep(ctx, pause) {
			return question, err
		}
		pause *= 2
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once asks the server once.
func (q *Questioner) once(ctx context.Context, messages []openai.ChatCompletionMessage) (string, error) {
	model, err := q.findModel(ctx)
	if err != nil {
		return "", err
	}
	res, err := q.client.CreateChatCompletion(ctx, openai.ChatCompletionRequest{
		Model: model, Messages: messages,
		MaxTokens: maxTokens, //nolint:staticcheck // its successor is unknown to Dynamo, vLLM and most other servers
	})
	if errors.Is(err, openai.ErrReasoningModelMaxTokensDeprecated) { // found by its name, before it is sent
		res, err = q.client.CreateChatCompletion(ctx, openai.ChatCompletionRequest{Model: model, Messages: messages, MaxCompletionTokens: maxThought})
	}
	if err != nil {
		if causeOf(err) == api.FollowupHTTP4xx {
			q.setModel(q.opts.Model) // another server may have come, with another model
		}
		return "", err
	}
	if len(res.Choices) == 0 || strings.TrimSpace(res.Choices[0].Message.Content) == "" {
		return "", &unfit{api.FollowupEmpty, "the answer has no text"}
	}
	said := res.Choices[0].Message.Content
	if question, ok := clean(said); ok {
		return question, nil
	}
	return "", &unfit{api.FollowupMalformed, "the answer is not a question: " + said}
}

// findModel gives the model in use, which the server tells where the options do not.
func (q *Questioner) findModel(ctx context.Context) (string, error) {
	q.mu.Lock()
	model := q.model
	q.mu.Unlock()
	if model != "" {
		return model, nil
	}
	list, err := q.client.ListModels(ctx)
	if err != nil {
		return "", err
	}
	if len(list.Models) == 0 || list.Models[0].ID == "" {
		return "", &unfit{api.FollowupMalformed, "the server lists no models; set followup.model"}
	}
	q.setModel(list.Models[0].ID)
	return list.Models[0].ID, nil
}

func (q *Questioner) setModel(model string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.model = model
}

func (q *Questioner) waits(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asking += n
}

func (q *Questioner) succeeded() {
	q.mu.Lock()
	back := q.problem != ""
	q.byModel++
	q.problem = ""
	q.mu.Unlock()
	if back {
		q.opts.Log.Info("the end-user model is asking again", "url", q.root)
	}
}

// failed notes an error and gives its cause. The log tells the first of a row only.
func (q *Questioner) failed(err error) api.FollowupCause {
	words := q.words(err)
	q.mu.Lock()
	first := q.problem == ""
	q.problem = words
	q.mu.Unlock()
	if first {
		q.opts.Log.Warn("the end-user model is unavailable; the built-in questioner asks instead", "url", q.root, "error", words)
	}
	return causeOf(err)
}
