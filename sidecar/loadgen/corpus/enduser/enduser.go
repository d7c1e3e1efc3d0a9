// Package enduser plays the user of a conversation with a separate model: an
// OpenAI-compatible server writes the follow-up questions. If that server fails, the built-in
// questioner asks and the failure is counted by its cause, so that no turn fails for lack of
// a question.
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
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
)

const (
	defaultTimeout = 10 * time.Second
	maxAttempts    = 3                      // for one question
	firstPause     = 200 * time.Millisecond // between two of them, doubled each time
	maxBody        = 1 << 20                // bytes of an answer
	maxQuestion    = 300                    // characters
	maxTokens      = 120                    // of an answer: a question and text around it
	maxThought     = 2000                   // tokens of an answer from a reasoning model
)

// Limits of the breaker. A server that fails repeatedly is not called for a while, so that it
// does not delay every conversation by the time limit.
const (
	tolerated  = 3
	leastBreak = time.Second // doubled with each failure after it
	mostBreak  = 30 * time.Second
)

// Options configure the server of the model.
type Options struct {
	URL    string // in the form of [api.ParseTarget]
	Model  string // empty: the first model that the server lists
	APIKey string // may be empty
	chat.Access
	Timeout time.Duration // of one question with all its attempts; 0 means 10 s
	Log     *slog.Logger  // nil disables the log
}

// Questioner asks questions that a model writes. It opens like the built-in one, since the first request is sent with
// the article, before there is an answer that a model could ask about. It is safe for concurrent use.
type Questioner struct {
	corpus.BuiltinQuestioner
	opts      Options
	root      string // the server, without /v1
	client    *openai.Client
	transport *http.Transport
	breaker   chat.Breaker

	mu        sync.Mutex
	model     string // in use; empty until it is known
	byModel   int64
	fallbacks map[api.FollowupCause]int64
	asking    int
	problem   string
}

var (
	_ corpus.Questioner = (*Questioner)(nil)
	_ corpus.Reporter   = (*Questioner)(nil)
)

// New makes a questioner without calling the server. The error is an [api.FieldError].
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
	transport.MaxIdleConnsPerHost = 32
	transport.IdleConnTimeout = 4 * time.Second
	q := &Questioner{
		opts: opts, root: api.TargetRoot(base).String(), model: opts.Model,
		transport: transport, fallbacks: map[api.FollowupCause]int64{},
		breaker: chat.Breaker{Failures: tolerated, Least: leastBreak, Most: mostBreak},
	}
	query := base.RawQuery
	base.RawQuery = ""
	q.client = q.newClient(base.String(), chat.Transport{Base: transport, Access: opts.Access, Query: query})
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

// bounded is a transport that cuts the body of an answer at maxBody.
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

// Close closes the idle connections. Questions in progress end with their contexts.
func (q *Questioner) Close() { q.transport.CloseIdleConnections() }

// Name identifies the model. It does not change when the server lists another model later.
func (q *Questioner) Name() string {
	if q.opts.Model != "" {
		return "model " + q.opts.Model
	}
	return "model at " + q.root
}

// Kind returns model.
func (q *Questioner) Kind() api.QuestionerKind { return api.QuestionerModel }

// Report returns the counts, and the problem that keeps the model from asking.
func (q *Questioner) Report() api.FollowupStatus {
	q.mu.Lock()
	defer q.mu.Unlock()
	return api.FollowupStatus{
		Name: q.Name(), URL: q.root, Model: q.model, ByModel: q.byModel,
		Fallbacks: maps.Clone(q.fallbacks), Asking: q.asking, Problem: q.problem,
	}
}

// Follow returns the model's question about the last answer, within the time limit, or that
// of the built-in questioner if the model fails. After the end of ctx it returns a question
// at once, without a count.
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
	return q.BuiltinQuestioner.Follow(ctx, r, topic, asked, answer)
}

// ask returns the model's question, or the cause of its absence.
func (q *Questioner) ask(ctx context.Context, topic string, asked []string, answer string) (string, api.FollowupCause) {
	began := time.Now()
	if !q.breaker.Admit(began) {
		return "", api.FollowupPaused
	}
	q.addAsking(+1)
	defer q.addAsking(-1)
	limited, cancel := context.WithTimeout(ctx, q.opts.Timeout)
	defer cancel()
	question, err := q.attempts(limited, prompt(topic, asked, answer))
	switch {
	case ctx.Err() != nil: // the question is not needed any more
		q.breaker.Release(time.Now())
		return "", api.FollowupTimeout
	case err != nil:
		q.breaker.Failure(time.Now(), began, 0)
		return "", q.failed(err)
	}
	q.breaker.Success()
	repeated := slices.ContainsFunc(asked, func(a string) bool { return strings.EqualFold(a, question) })
	q.answered(!repeated)
	if repeated {
		return "", api.FollowupRepeated
	}
	return question, ""
}

// attempts retries until there is a question, with growing pauses.
func (q *Questioner) attempts(ctx context.Context, messages []openai.ChatCompletionMessage) (question string,
	err error,
) {
	pause := firstPause
	for n := 1; ; n++ {
		question, err = q.once(ctx, messages)
		if err == nil || n == maxAttempts || !isTransient(err) || !sleep(ctx, pause) {
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

func (q *Questioner) once(ctx context.Context, messages []openai.ChatCompletionMessage) (string, error) {
	model, err := q.findModel(ctx)
	if err != nil {
		return "", err
	}
	res, err := q.client.CreateChatCompletion(ctx, openai.ChatCompletionRequest{
		Model: model, Messages: messages,
		MaxTokens: maxTokens, //nolint:staticcheck // its successor is unknown to Dynamo, vLLM and most other servers
	})
	if errors.Is(err, openai.ErrReasoningModelMaxTokensDeprecated) { // the client recognizes such a model by its name
		res, err = q.client.CreateChatCompletion(ctx, openai.ChatCompletionRequest{
			Model: model, Messages: messages, MaxCompletionTokens: maxThought,
		})
	}
	if err != nil {
		if causeOf(err) == api.FollowupHTTP4xx {
			q.setModel(q.opts.Model) // the server may have been replaced by one with another model
		}
		return "", err
	}
	if len(res.Choices) == 0 || strings.TrimSpace(res.Choices[0].Message.Content) == "" {
		return "", &unfit{api.FollowupEmpty, "the answer has no text"}
	}
	content := res.Choices[0].Message.Content
	if question, ok := clean(content); ok {
		return question, nil
	}
	return "", &unfit{api.FollowupMalformed, "the answer is not a question: " + content}
}

// findModel returns the model in use. Where the options name none, it is the first that the server lists.
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

func (q *Questioner) addAsking(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asking += n
}

// answered clears the problem after an answer of the model, and counts it if it is used as a question. If there was a
// problem, it logs that the model asks again.
func (q *Questioner) answered(used bool) {
	q.mu.Lock()
	back := q.problem != ""
	if used {
		q.byModel++
	}
	q.problem = ""
	q.mu.Unlock()
	if back {
		q.opts.Log.Info("the end-user model is asking again", "url", q.root)
	}
}

// failed stores an error as the problem and returns its cause. It logs the first of consecutive errors.
func (q *Questioner) failed(err error) api.FollowupCause {
	message := q.explain(err)
	q.mu.Lock()
	first := q.problem == ""
	q.problem = message
	q.mu.Unlock()
	if first {
		q.opts.Log.Warn("the end-user model is unavailable; the built-in questioner asks instead",
			"url", q.root, "error", message)
	}
	return causeOf(err)
}
