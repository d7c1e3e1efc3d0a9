// Package probe finds out with some dozens of requests what a router does: whether prompts that begin alike meet again,
// whether sessions stay, whether it follows the events of the caches, what it adds to a first token, and whether it
// holds streams back. A cache-aware policy that has no effect fails no request, and is found by nothing else.
package probe

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster/router"
)

const (
	pairs        = 10
	answerTokens = 2
	eventDelay   = time.Second // until a router has indexed the events of a prompt
	streamTokens = 20          // of the answers whose chunks are looked at
)

// Settings are the timeouts of a probe's clients.
var Settings = chat.Settings{
	ConnectTimeout: 5 * time.Second, FirstTokenTimeout: 15 * time.Second, TurnTimeout: 20 * time.Second,
}

// filler makes a prompt of some 15 blocks of 32 tokens.
var filler = strings.Repeat("A question is asked twice, to see what the second one finds of the first. ", 28)

// Options configure a probe.
type Options struct {
	Chat chat.Options // of the router, which its Recognize identifies
	// Engines are the URLs of the engines behind it; none: what it adds, and whether it follows events, stays unknown.
	Engines []string
	// RecognizedOnly ends the probe at once in front of a router that is not recognized. The report then has no Router.
	RecognizedOnly bool
}

// Placement counts pairs of requests whose second one was served where the first one was.
type Placement struct {
	Same int `json:"same"`
	Of   int `json:"of"`
	// ByChance is the probability that as many meet, or more, where the second request of each pair goes to the worker of
	// the first one as often as prompts that begin differently do.
	ByChance float64 `json:"by_chance"`
}

// Report is what a probe has found. What could not be looked at is nil.
type Report struct {
	Router  string `json:"router,omitempty"`    // display name; empty: not recognized
	By      string `json:"worker_by,omitempty"` // what names the worker of an answer; empty: the cached tokens do
	Workers int    `json:"workers"`             // that have answered; 0: they are not named

	Repeats Placement  `json:"repeats"`               // pairs of identical prompts
	Others  *Placement `json:"others,omitempty"`      // pairs of different ones
	Session string     `json:"session,omitempty"`     // what carries the session, in the notation of target.session
	Stays   *Placement `json:"sessions,omitempty"`    // different prompts of one session
	Events  *Placement `json:"events,omitempty"`      // prompts that an engine had got before, without the router
	Added   *Added     `json:"added,omitempty"`       // to the first token
	Held    bool       `json:"held"`                  // streams arrive in bursts
	Direct  *bool      `json:"held_direct,omitempty"` // the engines' own streams do
	Seconds float64    `json:"seconds"`
}

// run is a probe in progress.
type run struct {
	Report

	client  *chat.Client
	engines []*chat.Client
	hosts   []string       // of the engines
	served  map[string]int // prompts that begin differently, by worker
	rng     *mathrand.Rand
}

// Run probes a router. It takes some seconds and about 80 requests of 500 tokens or fewer.
func Run(ctx context.Context, o Options) (Report, error) {
	began := time.Now()
	r := &run{rng: mathrand.New(mathrand.NewPCG(uint64(began.UnixNano()), 1))}
	defer r.close()
	if err := r.connect(ctx, o); err != nil || o.RecognizedOnly && r.Router == "" {
		return Report{}, err
	}
	for _, look := range []func(context.Context) error{r.places, r.added, r.streams} {
		if err := look(ctx); err != nil {
			return Report{}, err
		}
	}
	r.Seconds = time.Since(began).Seconds()
	return r.Report, nil
}

func (r *run) close() {
	for _, c := range append(r.engines, r.client) {
		if c != nil {
			c.Close()
		}
	}
}

// connect makes the clients, that of the router with the session that it takes.
func (r *run) connect(ctx context.Context, o Options) error {
	var found *router.Router
	for range 2 { // once more with the session of the router that the first one has recognized
		client, err := chat.New(o.Chat)
		if err != nil {
			return err
		}
		r.client = client
		if failure := client.Probe(ctx); failure != nil {
			return failure
		}
		found = router.ByID(client.Recognized().Router)
		r.Session, r.By = o.Chat.Session.String(), client.Recognized().Worker
		if found == nil || r.Session != "" || len(found.Sessions) == 0 {
			break
		}
		client.Close()
		if err := o.Chat.Session.UnmarshalText([]byte(found.Sessions[0])); err != nil {
			return err
		}
	}
	if found != nil {
		r.Router = found.Name
	}
	for _, text := range o.Engines {
		u, err := url.Parse(text)
		if err != nil {
			return api.Refuse("engines", text, "URLs of engines, such as http://gpu-1:8000")
		}
		client, err := chat.New(chat.Options{
			URL: text, Model: r.client.Model(), Settings: o.Chat.Settings, Dial: o.Chat.Dial,
		})
		if err != nil {
			return err
		}
		r.engines = append(r.engines, client)
		r.hosts = append(r.hosts, u.Host)
		if failure := client.Probe(ctx); failure != nil {
			return fmt.Errorf("%s: %w", text, failure)
		}
	}
	return nil
}

// FindEngines returns those of some metrics pages at whose address an engine lists its model.
func FindEngines(ctx context.Context, client *http.Client, pages []string) (engines []string) {
	for _, page := range pages {
		u, err := url.Parse(page)
		if err != nil || u.Host == "" {
			continue
		}
		root := u.Scheme + "://" + u.Host
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, root+"/v1/models", nil)
		if err != nil {
			continue
		}
		response, err := client.Do(request)
		if err != nil {
			continue
		}
		var list struct{ Data []struct{ ID string } }
		err = json.NewDecoder(response.Body).Decode(&list)
		response.Body.Close()
		if err == nil && len(list.Data) > 0 {
			engines = append(engines, root)
		}
	}
	return engines
}

// asked is a request of a probe, with its answer.
type asked struct {
	client  *chat.Client
	prompt  string
	session string
	answer  chat.Result
}

// fresh returns a prompt that begins like no other.
func fresh() string { return rand.Text() + ". " + filler }

// all sends requests, a number at once, in an order that is drawn: a rotation over the workers then repeats nothing.
func (r *run) all(ctx context.Context, requests []*asked, atOnce int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, i := range r.rng.Perm(len(requests)) {
		q := requests[i]
		group.Go(func() (err error) {
			q.answer, err = Ask(ctx, cmp.Or(q.client, r.client), chat.Request{
				Messages:     []chat.Message{{Role: chat.RoleUser, Text: q.prompt}},
				Conversation: cmp.Or(q.session, rand.Text()), MaxTokens: answerTokens,
			})
			return err
		})
	}
	return group.Wait()
}

// Ask sends a request and returns its complete answer, or why there is none.
func Ask(ctx context.Context, client *chat.Client, q chat.Request) (chat.Result, error) {
	a := client.Do(ctx, q)
	switch {
	case a.Cancelled:
		return a, api.Reason(context.Cause(ctx))
	case a.Err != nil:
		return a, a.Err
	}
	return a, nil
}

// found reports whether an answer found most of its prompt in a cache. known is false where no answer says so.
func found(a chat.Result) (hit, known bool) {
	if a.Usage == nil || !a.Usage.HasCached {
		return false, false
	}
	return 2*a.Usage.Cached > a.Usage.Prompt, true
}

// met counts pairs. Where no worker is named, a repeat that finds its prompt in the cache was served where the first
// one was.
func (r *run) met(c couple, repeats bool) *Placement {
	p := &Placement{}
	chances := []float64{1} // of each number of pairs that meet
	count := func(same bool, chance float64) {
		p.Of++
		if same {
			p.Same++
		}
		chances = append(chances, 0)
		for k := len(chances) - 1; k > 0; k-- {
			chances[k] = chances[k]*(1-chance) + chances[k-1]*chance
		}
		chances[0] *= 1 - chance
	}
	for i, a := range c.first {
		worker, again := a.answer.Worker, c.second[i].answer
		hit, known := found(again)
		switch {
		case worker != "" && again.Worker != "":
			count(worker == again.Worker, r.share(worker))
		case repeats && known:
			count(hit, r.share(""))
		}
	}
	if p.Of == 0 {
		return nil
	}
	for _, chance := range chances[p.Same:] {
		p.ByChance += chance
	}
	return p
}

// couple is a list of first and a list of second requests.
type couple struct{ first, second []*asked }

// couples makes pairs of requests.
func couples(create func(i int) (first, second *asked)) (c couple) {
	for i := range pairs {
		first, second := create(i)
		c.first, c.second = append(c.first, first), append(c.second, second)
	}
	return c
}

// places looks at where requests go. First ones are sent at once, so that a router spreads them. After a time in which
// events arrive, those that may find a cache follow one after the other: two that arrive together may be spread, too.
func (r *run) places(ctx context.Context) error {
	same := couples(func(int) (_, _ *asked) {
		text := fresh()
		return &asked{prompt: text}, &asked{prompt: text}
	})
	others := couples(func(i int) (_, _ *asked) { return same.first[i], &asked{prompt: fresh()} })
	var sessions, events couple
	if r.Session != "" {
		sessions = couples(func(int) (_, _ *asked) {
			id := rand.Text()
			return &asked{prompt: fresh(), session: id}, &asked{prompt: fresh(), session: id}
		})
	}
	if len(r.engines) > 1 {
		events = couples(func(i int) (_, _ *asked) {
			text := fresh()
			return &asked{prompt: text, client: r.engines[i%len(r.engines)]}, &asked{prompt: text}
		})
	}
	for _, first := range [][]*asked{same.first, slices.Concat(sessions.first, events.first)} {
		if err := r.all(ctx, first, len(first)+1); err != nil {
			return err
		}
	}
	if err := Pause(ctx, eventDelay); err != nil {
		return err
	}
	if err := r.all(ctx, slices.Concat(same.second, events.second), 1); err != nil {
		return err
	}
	if err := r.all(ctx, slices.Concat(others.second, sessions.second), 2*pairs); err != nil {
		return err
	}
	r.countWorkers(slices.Concat(same.first, others.second))
	if err := r.repeat(ctx, same); err != nil {
		return err
	}
	r.Others, r.Stays = r.met(others, false), r.met(sessions, false)
	for i := range events.first {
		events.first[i].answer.Worker = r.hosts[i%len(r.hosts)]
		if !slices.Contains(r.hosts, events.second[i].answer.Worker) {
			events.second[i].answer.Worker = "" // the router has other names for the engines
		}
	}
	r.Events = r.met(events, true)
	return nil
}

// repeat counts repeated prompts that went where they had been. It repeats them once more where nearly all did, but may
// have done so by chance, since most prompts go there.
func (r *run) repeat(ctx context.Context, same couple) error {
	p := r.met(same, true)
	if p != nil && r.Workers > 1 && 10*p.Same >= 9*p.Of && p.ByChance > certain {
		more := couples(func(i int) (_, _ *asked) { return same.second[i], &asked{prompt: same.first[i].prompt} })
		if err := r.all(ctx, more.second, 1); err != nil {
			return err
		}
		p = r.met(couple{slices.Concat(same.first, more.first), slices.Concat(same.second, more.second)}, true)
	}
	if p != nil {
		r.Repeats = *p
	}
	return nil
}

// countWorkers counts the workers of prompts that begin differently.
func (r *run) countWorkers(different []*asked) {
	r.served = map[string]int{}
	for _, a := range different {
		if a.answer.Worker != "" {
			r.served[a.answer.Worker]++
		}
	}
	r.Workers = len(r.served)
}

// share is the share of prompts that a worker serves; 1 where nothing is known of it.
func (r *run) share(worker string) float64 {
	all := 0
	for _, n := range r.served {
		all += n
	}
	switch {
	case worker != "" && all > 0:
		return float64(max(1, r.served[worker])) / float64(all)
	case len(r.engines) > 0:
		return 1 / float64(len(r.engines))
	}
	return 1
}

// added measures what the router adds to a first token.
func (r *run) added(ctx context.Context) error {
	if len(r.engines) == 0 {
		return nil
	}
	a, err := measure(ctx, r.client, r.engines[0], pairs)
	r.Added = &a
	return err
}

// streams looks at the chunks of a longer answer.
func (r *run) streams(ctx context.Context) error {
	held := func(client *chat.Client) (bool, error) {
		a, err := Ask(ctx, client, chat.Request{
			Messages:  []chat.Message{{Role: chat.RoleUser, Text: "Number " + strconv.FormatInt(time.Now().UnixNano(), 36)}},
			MaxTokens: streamTokens,
		})
		return a.Buffered(), err
	}
	var err error
	for range 2 { // a busy machine may read the chunks of one answer together
		if r.Held, err = held(r.client); err != nil || !r.Held {
			return err
		}
	}
	if len(r.engines) == 0 {
		return nil
	}
	direct, err := held(r.engines[0])
	r.Direct = &direct
	return err
}

// Pause waits for a time, or until ctx ends, and returns the reason of that.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return api.Reason(ctx.Err())
	case <-time.After(d):
		return nil
	}
}
