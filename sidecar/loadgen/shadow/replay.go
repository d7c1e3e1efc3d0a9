package shadow

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/trace"
)

// Service holds assumed durations for traces without times.
type Service struct {
	FirstToken time.Duration // time from the request to its first token
	PerToken   time.Duration // time of each later token of the answer
}

// Times returns the times of a request's first token and end after its arrival: the trace's own
// where it has them.
func (s Service) Times(r *trace.Record) (first, ended time.Duration) {
	first, ended = r.FirstToken, r.Ended
	if first < 0 {
		if first = s.FirstToken; ended >= 0 {
			first = min(first, ended)
		}
	}
	if ended < 0 {
		ended = first + time.Duration(r.OutputTokens)*s.PerToken
	}
	return first, ended
}

// Source is a trace, such as a [trace.Reader].
type Source interface {
	// Next returns the next request in the order of time, and io.EOF after the last.
	Next() (*trace.Record, error)
}

// Replay replays a trace to one shadow for each of options, and returns their figures at the end.
// It uses all cores. Requests without a conversation are assigned one, see [Threads]. progress, if
// not nil, receives the number of requests read so far, every 10,000 and at the end. An error is
// the source's, the context's, or an *[api.FieldError] of the options.
func Replay(
	ctx context.Context, source Source, service Service, options []Options, progress func(requests int64),
) ([]Figures, error) {
	lanes, err := newLanes(options, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	for _, l := range lanes {
		wg.Go(l.run)
	}
	p := producer{service: service, lanes: lanes, threads: NewThreads(), progress: progress}
	err = p.run(ctx, source)
	for _, l := range lanes {
		close(l.batches)
	}
	wg.Wait()
	if err != nil {
		return nil, err
	}
	return p.figures(options), nil
}

// lane is the share of the policies that one goroutine computes.
type lane struct {
	batches chan []step
	jobs    []*job
	weight  int
}

// job is one shadow of a lane, with one of the policies of its options.
type job struct {
	shadow  *Shadow
	setting int  // index of the options
	first   bool // the first job of the setting, which has the actual world
	flights []*Flight
}

// step is an event of a request.
type step struct {
	at      time.Duration
	kind    eventKind
	request *request
}

// Before orders by time, then first tokens before ends, then by the requests' order.
func (s step) Before(other step) bool {
	return cmp.Or(
		cmp.Compare(s.at, other.at),
		cmp.Compare(s.kind, other.kind),
		cmp.Compare(s.request.Line, other.request.Line),
	) < 0
}

// request is a request of a trace. Its place is reused after its end.
type request struct {
	*trace.Record
	conversation uint64
	place        int
	answers      bool // the request has a first token
}

// newLanes distributes the policies of all options over n lanes of similar weight. Each policy is a
// separate job: the caches of one policy fit into the processor's caches, those of all do not.
func newLanes(options []Options, n int) ([]*lane, error) {
	lanes := make([]*lane, n)
	for i := range lanes {
		lanes[i] = &lane{batches: make(chan []step, 4)}
	}
	for setting, o := range options {
		alone := o
		for i := range max(len(o.Policies), 1) {
			if len(o.Policies) > 0 {
				alone.Policies = o.Policies[i : i+1]
			}
			// The reuse of answers is inferred in the actual world.
			alone.noActual = i > 0 && o.Answers != AnswersInferred
			s, err := New(alone)
			if err != nil {
				return nil, err
			}
			least := slices.MinFunc(lanes, func(a, b *lane) int { return cmp.Compare(a.weight, b.weight) })
			least.jobs = append(least.jobs, &job{shadow: s, setting: setting, first: i == 0})
			for _, p := range alone.Policies {
				least.weight += p.weight(len(o.Workers))
			}
		}
	}
	return lanes, nil
}

// weight is the approximate cost of a policy.
func (p Policy) weight(workers int) int {
	if p.Kind == KV || p.Kind == BestPlacement {
		return 10 + 3*workers
	}
	return 10
}

func (l *lane) run() {
	for batch := range l.batches {
		for _, j := range l.jobs {
			for i := range batch {
				j.apply(&batch[i])
			}
		}
	}
}

func (j *job) apply(s *step) {
	q := s.request
	switch s.kind {
	case beginning:
		for q.place >= len(j.flights) {
			j.flights = append(j.flights, nil)
		}
		j.flights[q.place] = j.shadow.Begin(s.at, Request{
			ID: q.ID, Blocks: q.Blocks, PromptTokens: q.PromptTokens, Conversation: q.conversation,
			Worker: sim.WorkerID(q.Worker),
		})
	case firstToken:
		j.shadow.First(s.at, j.flights[q.place])
	case ending:
		j.shadow.End(s.at, j.flights[q.place], q.OutputTokens, q.Cached)
	}
}

// producer turns requests into steps in the order of time.
type producer struct {
	service  Service
	lanes    []*lane
	threads  *Threads
	progress func(int64)

	ahead    queue[step] // future first tokens and ends
	batch    []step
	requests int64
	end      time.Duration
	places   []int // free places
	taken    int
}

const (
	batchSteps    = 4096
	progressEvery = 10_000
)

func (p *producer) run(ctx context.Context, source Source) error {
	for {
		record, err := source.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := p.advance(ctx, record.At); err != nil {
			return err
		}
		p.begin(record)
	}
	if err := p.advance(ctx, math.MaxInt64); err != nil {
		return err
	}
	if p.progress != nil {
		p.progress(p.requests)
	}
	return p.send(ctx)
}

// advance emits the steps up to a moment.
func (p *producer) advance(ctx context.Context, until time.Duration) error {
	for {
		if len(p.batch) >= batchSteps {
			if err := p.send(ctx); err != nil {
				return err
			}
		}
		if len(p.ahead) == 0 || p.ahead[0].at > until {
			return nil
		}
		if s := heap.Pop(&p.ahead).(step); s.kind == beginning {
			p.begin(s.request.Record)
		} else {
			p.emit(s)
		}
	}
}

func (p *producer) begin(r *trace.Record) {
	p.requests++
	if p.progress != nil && p.requests%progressEvery == 0 {
		p.progress(p.requests)
	}
	q := &request{Record: r, answers: r.Ended < 0 || r.OutputTokens > 0, conversation: r.Session}
	if q.conversation == 0 {
		q.conversation = p.threads.Conversation(r.Blocks[:min(len(r.Blocks), r.PromptTokens/r.BlockTokens)])
	}
	if n := len(p.places); n > 0 {
		q.place = p.places[n-1]
		p.places = p.places[:n-1]
	} else {
		q.place = p.taken
		p.taken++
	}
	first, ended := p.service.Times(r)
	p.emit(step{r.At, beginning, q})
	if q.answers {
		heap.Push(&p.ahead, step{r.At + first, firstToken, q})
	}
	heap.Push(&p.ahead, step{r.At + ended, ending, q})
	if next := r.Next; next != nil {
		next.At = r.At + ended + max(next.Delay, 0)
		heap.Push(&p.ahead, step{next.At, beginning, &request{Record: next}})
	}
}

func (p *producer) emit(s step) {
	p.batch = append(p.batch, s)
	p.end = s.at
	if s.kind == ending {
		p.places = append(p.places, s.request.place)
	}
}

func (p *producer) send(ctx context.Context) error {
	for _, l := range p.lanes {
		select {
		case l.batches <- p.batch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.batch = make([]step, 0, batchSteps+64)
	return nil
}

// figures collects the figures of each options' policies from all lanes.
func (p *producer) figures(options []Options) []Figures {
	all := make([]Figures, len(options))
	found := map[int]map[string]PolicyFigures{}
	for _, l := range p.lanes {
		for _, j := range l.jobs {
			f := j.shadow.Figures(p.end)
			if found[j.setting] == nil {
				found[j.setting] = map[string]PolicyFigures{}
			}
			if j.first {
				all[j.setting] = f
			}
			for _, policy := range f.Policies {
				found[j.setting][policy.Policy.Name] = policy
			}
		}
	}
	for i, o := range options {
		all[i].Policies = all[i].Policies[:1:1]
		for _, policy := range o.Policies {
			all[i].Policies = append(all[i].Policies, found[i][policy.Name])
		}
	}
	return all
}

// SyntheticWorkers returns ids for workers that a trace does not name.
func SyntheticWorkers(workers int) []sim.WorkerID {
	ids := make([]sim.WorkerID, workers)
	for i := range ids {
		ids[i] = sim.WorkerID(i + 1)
	}
	return ids
}

// Threads infers which requests belong to one conversation. The first request whose prompt begins with
// all full blocks of an earlier request's prompt, and continues, is the next turn of its conversation.
// Further requests that continue the same prompt, such as a common opening, begin new conversations. It
// remembers about a million recent requests.
type Threads struct {
	ends recent[uint64] // conversations by the last full block of a prompt
	last uint64
}

// NewThreads returns Threads without requests.
func NewThreads() *Threads { return &Threads{ends: newRecent[uint64](1 << 19)} }

// Conversation returns the conversation of the next request, by the full blocks of its prompt; 0 without any.
func (t *Threads) Conversation(prompt []uint64) uint64 {
	if len(prompt) == 0 {
		return 0
	}
	end := prompt[len(prompt)-1]
	for _, hash := range slices.Backward(prompt) {
		if conversation, ok := t.ends.get(hash); ok {
			t.ends.delete(hash)
			t.ends.set(end, conversation)
			return conversation
		}
	}
	t.last++
	t.ends.set(end, t.last)
	return t.last
}
