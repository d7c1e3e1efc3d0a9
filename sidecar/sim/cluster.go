package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"kvbooth/sidecar/api"
)

// Options configure a cluster.
type Options struct {
	Profile     Profile
	Mode        api.Mode        // kv, round_robin or least_loaded
	Speculation api.Speculation // a kind that the profile offers; not_recorded is the deployment as recorded
	Seed        uint64          // of all random choices

	OverlapWeight float64 // weight of prefill against decode under kv, from 0: Dynamo's --router-prefill-load-scale
	Temperature   float64 // softmax temperature of the choice under kv; 0 takes the lowest cost
	Router        RouterSwitches
	// BestPlacement makes the router choose under kv by [BestPlacement] in place of the cost of Dynamo's router.
	BestPlacement bool

	// ForgetAnswers keeps the blocks of answers out of the prefix cache, as in Dynamo's mock workers.
	ForgetAnswers bool

	Restart time.Duration // duration of a change of mode or speculation

	Caches CacheObserver // receives the changes of the workers' caches; nil disables it
}

// DefaultOptions returns Dynamo's defaults under kv, on the deployment as recorded. A change of mode takes 5 s.
func DefaultOptions(p Profile) Options {
	return Options{
		Profile: p, Mode: api.ModeKV, Speculation: api.SpeculationNotRecorded,
		OverlapWeight: 1, Router: DefaultRouterSwitches(), Restart: 5 * time.Second,
	}
}

const (
	maxOverlapWeight = 1000
	maxTemperature   = 1000
	maxRequestWeight = 1000 // blocks
	maxCreditDecay   = 1000
	maxRestart       = time.Hour
)

// Cluster is a simulated Dynamo deployment of one frontend with a router and some workers, driven in virtual time. It
// runs no goroutine and reads no clock: events take effect when [Cluster.Advance] is called with their time or a
// later one. Times are virtual and start at zero when the cluster is made.
//
// Equal options and equal calls give equal results. A Cluster is not safe for concurrent use. Observers are called
// from within Submit, Advance, Cancel, Switch, Reroute and LoseWorker. They may call the cluster, except for Advance,
// Switch, Reroute and LoseWorker.
type Cluster struct {
	options     Options
	profile     *Profile
	speculation Speculation
	thresholds  []float64 // result of speculation.thresholds
	step        StepCost  // iteration times with speculation

	clock   clock
	rng     *rand.Rand
	router  *router
	workers []*worker
	jobs    map[*Job]struct{} // jobs that have not ended
	serial  uint64            // serial number of the latest job
	readyAt time.Duration

	eligible []*worker    // workers that the latest request could go to
	spare    []*iteration // unused iterations, kept to save allocations
}

// New returns a ready cluster with empty caches. Options out of range give an *[api.FieldError].
func New(o Options) (*Cluster, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	c := &Cluster{
		options: o, profile: &o.Profile, rng: rand.New(rand.NewPCG(Mix(o.Seed), 0)), jobs: map[*Job]struct{}{},
	}
	c.router = newRouter(o, c.rng)
	for i := range o.Profile.Workers {
		w := &worker{
			cluster: c, id: WorkerID(c.rng.Uint64() | 1<<63), index: i, pace: o.Profile.pace(i),
		}
		w.cache = newCache[blockID](o.Profile.KV.Blocks, w)
		c.workers = append(c.workers, w)
	}
	c.speculate(o.Speculation)
	return c, nil
}

func (o Options) validate() error {
	if err := o.Profile.Validate(); err != nil {
		return err
	}
	if err := validateMode(o.Profile, o.Mode, o.Speculation); err != nil {
		return err
	}
	return firstOutOfRange([]bound{
		{"overlap_weight", o.OverlapWeight, 0, maxOverlapWeight},
		{"temperature", o.Temperature, 0, maxTemperature},
		{"router_decode_active_request_weight", o.Router.DecodeActiveRequestWeight, 0, maxRequestWeight},
		{"router_kv_overlap_score_credit", o.Router.OverlapScoreCredit, 0, 1},
		{"router_kv_overlap_score_credit_decay", o.Router.OverlapScoreCreditDecay, 0, maxCreditDecay},
		{"restart", o.Restart.Seconds(), 0, maxRestart.Seconds()},
	})
}

// modes are the supported routing modes.
var modes = []api.Mode{api.ModeKV, api.ModeRoundRobin, api.ModeLeastLoaded}

func validateMode(p Profile, mode api.Mode, kind api.Speculation) error {
	if !slices.Contains(modes, mode) {
		return api.Refuse("mode", mode, fmt.Sprint(modes))
	}
	if _, ok := p.Speculation[kind]; !ok {
		return api.Refuse("speculation", kind, fmt.Sprint(slices.Sorted(maps.Keys(p.Speculation))))
	}
	return nil
}

// speculate sets the kind of speculation and the fields that depend on it.
func (c *Cluster) speculate(kind api.Speculation) {
	c.options.Speculation = kind
	c.speculation = c.profile.Speculation[kind]
	c.thresholds = c.speculation.thresholds()
	c.step = c.profile.Step.scaled(c.speculation.StepScale)
}

// Now returns the present virtual time.
func (c *Cluster) Now() time.Duration { return c.clock.now }

// Next returns the time of the next event. Before it, the state changes only through calls. It returns false if no
// event is pending.
func (c *Cluster) Next() (time.Duration, bool) { return c.clock.next() }

// Advance runs all events up to a moment and sets the virtual time to it. A moment in the past changes nothing.
func (c *Cluster) Advance(until time.Duration) { c.clock.advance(until) }

// Submit passes a request to the frontend at the present virtual time, so [Cluster.Advance] comes first. The router
// decides at once. A request that could never be served gives an *[api.FieldError]. A request that cannot be served
// now gives [ErrRestarting], [ErrNoWorkers] or [ErrNoInstance], without a call of its observer.
func (c *Cluster) Submit(r Request, o Observer) (*Job, error) {
	if err := c.validate(&r); err != nil {
		return nil, err
	}
	pinned, err := c.elect(r.Instance)
	if err != nil {
		return nil, err
	}
	c.serial++
	j := &Job{request: r, observer: o, serial: c.serial}
	j.report.Submitted, j.report.PromptTokens = c.clock.now, r.PromptTokens
	j.path = c.router.path(r.Blocks)
	d := c.router.route(c.clock.now, j, c.eligible, pinned)
	j.worker = c.workers[d.Worker().index]
	c.jobs[j] = struct{}{}
	c.clock.schedule(c.clock.now+milliseconds(c.profile.Frontend.In), j)
	o.Routed(d)
	return j, nil
}

func (c *Cluster) validate(r *Request) error {
	kv := c.profile.KV
	if err := firstOutOfRange([]bound{
		{"prompt_tokens", float64(r.PromptTokens), 1, float64(kv.Tokens() - 1)},
		{"output_tokens", float64(r.OutputTokens), 1, float64(kv.Tokens() - r.PromptTokens)},
	}); err != nil {
		return err
	}
	if full := r.PromptTokens / kv.BlockTokens; len(r.Blocks) < full {
		return api.Refuse("blocks", len(r.Blocks), fmt.Sprintf("the hashes of the prompt's %d full blocks, at least", full))
	}
	return nil
}

// elect collects the ready workers and finds the one that the request names; pinned is nil if it names none.
func (c *Cluster) elect(instance WorkerID) (pinned *worker, err error) {
	if c.clock.now < c.readyAt {
		return nil, ErrRestarting
	}
	c.eligible = c.eligible[:0]
	for _, w := range c.workers {
		if w.ready() {
			c.eligible = append(c.eligible, w)
			if w.id == instance {
				pinned = w
			}
		}
	}
	switch {
	case len(c.eligible) == 0:
		return nil, ErrNoWorkers
	case instance != 0 && pinned == nil:
		return nil, ErrNoInstance
	}
	return pinned, nil
}

// deliver passes tokens from the frontend to the job's observer.
func (c *Cluster) deliver(j *Job, tokens int) {
	if j.done {
		return
	}
	if j.delivered == 0 {
		c.router.prefilled(j)
		j.report.FirstToken = c.clock.now
		j.observer.FirstToken(j.report)
	}
	j.delivered += tokens
	c.router.grown(j)
	j.observer.Tokens(c.clock.now, tokens)
	if !j.done && j.delivered == j.request.OutputTokens {
		j.report.Reason = j.request.Reason
		c.router.free(j)
		c.end(j)
	}
}

// end closes a job whose load the router has already removed from its account.
func (c *Cluster) end(j *Job) {
	j.done = true
	j.report.Ended, j.report.OutputTokens = c.clock.now, j.delivered
	delete(c.jobs, j)
	j.observer.Finished(j.report)
}

// Cancel ends a request with [ErrCanceled], because its client has disconnected. The computed part of its prompt
// stays in the cache. Cancel has no effect on a request that has ended.
func (c *Cluster) Cancel(j *Job) {
	if j.done {
		return
	}
	j.worker.drop(j)
	j.report.Err = ErrCanceled
	c.router.free(j)
	c.end(j)
}

// State describes what the cluster serves.
type State struct {
	Mode        api.Mode
	Speculation api.Speculation
	Calibrated  bool          // if false, reports of the results must say "not calibrated"
	Ready       bool          // false while the cluster restarts and requests get [ErrRestarting]
	ReadyAt     time.Duration // start of readiness, past or future
	Inflight    int           // requests that have not ended
}

// State returns the cluster's state at the present moment.
func (c *Cluster) State() State {
	return State{
		Mode: c.router.mode, Speculation: c.options.Speculation,
		Calibrated: c.profile.CalibratedFor(c.options.Speculation),
		Ready:      c.clock.now >= c.readyAt, ReadyAt: c.readyAt, Inflight: len(c.jobs),
	}
}

// Switch changes mode and speculation by a restart of the whole deployment, as on a real cluster. Requests in
// progress fail with [ErrRestarting], the caches and the router's state are lost, and new requests are refused until
// [State].ReadyAt. A call during a restart begins it again. A mode or speculation that is not offered gives an
// *[api.FieldError] and changes nothing.
func (c *Cluster) Switch(mode api.Mode, kind api.Speculation) error {
	if err := validateMode(*c.profile, mode, kind); err != nil {
		return err
	}
	c.readyAt = c.clock.now + c.options.Restart
	c.router.mode = mode
	c.speculate(kind)
	for _, w := range c.workers {
		w.lose(c.readyAt)
	}
	c.fail(ErrRestarting, func(*Job) bool { return true })
	return nil
}

// Reroute restarts only the frontend, with another mode of its router. Requests in progress fail with
// [ErrRestarting]. The workers keep their caches, and the router keeps what it holds of them. A mode that is not
// offered gives an *[api.FieldError] and changes nothing.
func (c *Cluster) Reroute(mode api.Mode) error {
	if err := validateMode(*c.profile, mode, c.options.Speculation); err != nil {
		return err
	}
	c.router.mode = mode
	c.fail(ErrRestarting, func(j *Job) bool {
		j.worker.drop(j)
		return true
	})
	return nil
}

// Route changes the mode of the router in place, as when new requests go to a second frontend over the same workers.
// Requests in progress go on, the workers keep their caches, and the router keeps what it holds of them. A mode that is
// not offered gives an *[api.FieldError] and changes nothing.
func (c *Cluster) Route(mode api.Mode) error {
	if err := validateMode(*c.profile, mode, c.options.Speculation); err != nil {
		return err
	}
	c.router.mode = mode
	return nil
}

// LoseWorker removes a worker, as when its process is killed: its requests fail with [ErrWorkerLost], its cache is
// lost, and the router stops using it at once. After the given time the worker is back with an empty cache and its
// old id. For a worker that is lost already, the time starts again. An unknown id gives [ErrNoInstance].
func (c *Cluster) LoseWorker(id WorkerID, away time.Duration) error {
	i := slices.IndexFunc(c.workers, func(w *worker) bool { return w.id == id })
	if i < 0 {
		return ErrNoInstance
	}
	w := c.workers[i]
	w.lose(max(c.clock.now+away, c.readyAt))
	c.fail(ErrWorkerLost, func(j *Job) bool { return j.worker == w })
	return nil
}

// ClearCache empties the cache of a worker, numbered from 0. It returns false and changes nothing while requests use
// blocks of it.
func (c *Cluster) ClearCache(worker int) bool {
	cache := c.workers[worker].cache
	if cache.active() > 0 {
		return false
	}
	cache.clear()
	return true
}

// fail ends the affected jobs with an error, in the order in which they were submitted.
func (c *Cluster) fail(err error, affected func(*Job) bool) {
	inOrder := func(a, b *Job) int { return cmp.Compare(a.serial, b.serial) }
	for _, j := range slices.SortedFunc(maps.Keys(c.jobs), inOrder) {
		if j.done || !affected(j) {
			continue // an observer of an earlier job may have canceled this one
		}
		j.worker.counters.Failed++
		j.report.Err = err
		c.router.free(j)
		c.end(j)
	}
}

// Workers returns the state of each worker at the present moment, in a fixed order.
func (c *Cluster) Workers() []WorkerStats {
	stats := make([]WorkerStats, 0, len(c.workers))
	for _, w := range c.workers {
		stats = append(stats, w.stats())
	}
	return stats
}

// RouterStats returns the router's counters.
func (c *Cluster) RouterStats() RouterStats { return c.router.stats }

// Decisions returns the last thousand decisions, the oldest first. The decisions are shared and must not be changed.
func (c *Cluster) Decisions() []*Decision { return c.router.kept() }
