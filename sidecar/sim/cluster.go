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

// Options say what a cluster is like.
type Options struct {
	Profile     Profile
	Mode        api.Mode        // kv, round_robin or least_loaded
	Speculation api.Speculation // one that the profile offers; not_recorded is the deployment as recorded
	Seed        uint64          // of everything that is left to chance

	OverlapWeight float64 // of prefill against decode in the costs under kv, from 0: Dynamo's --router-prefill-load-scale
	Temperature   float64 // of the choice under kv; 0 takes the lowest cost
	Router        RouterSwitches

	// ForgetAnswers keeps the blocks of answers from being found again, as in
	// Dynamo's mock workers.
	ForgetAnswers bool

	Restart time.Duration // how long a change of mode or speculation takes
}

// DefaultOptions are Dynamo's defaults under kv, on the deployment as recorded.
// A change of mode takes 5 s.
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

// Cluster is a simulated Dynamo deployment of one frontend with a router and some
// workers, driven in virtual time. It runs no goroutine and reads no clock: what
// happens by a moment happens when [Cluster.Advance] is called with it. Times are
// virtual, counted from the cluster's beginning.
//
// Equal options and equal calls give equal results. A Cluster is not safe for
// concurrent use; observers are called from within Submit, Advance, Cancel, Switch
// and LoseWorker, by which time the cluster can take further calls, except that
// Advance, Switch and LoseWorker must not be called from an observer.
type Cluster struct {
	options     Options
	profile     *Profile
	speculation Speculation
	thresholds  []float64 // of the speculation
	step        StepCost  // under the speculation

	clock   clock
	rng     *rand.Rand
	router  *router
	workers []*worker
	jobs    map[*Job]struct{} // not done
	serial  uint64            // of the latest job
	readyAt time.Duration

	eligible []*worker    // of the latest request
	spare    []*iteration // to be used again
}

// New starts a cluster, ready and with empty caches. Options that are out of range
// give an *[api.FieldError].
func New(o Options) (*Cluster, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	c := &Cluster{options: o, profile: &o.Profile, rng: rand.New(rand.NewPCG(Mix(o.Seed), 0)), jobs: map[*Job]struct{}{}}
	c.router = newRouter(o, c.rng)
	for i := range o.Profile.Workers {
		w := &worker{cluster: c, id: WorkerID(c.rng.Uint64() | 1<<63), index: i, pace: o.Profile.pace(i)}
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
	return first([]bound{
		{"overlap_weight", o.OverlapWeight, 0, maxOverlapWeight},
		{"temperature", o.Temperature, 0, maxTemperature},
		{"router_decode_active_request_weight", o.Router.DecodeActiveRequestWeight, 0, maxRequestWeight},
		{"router_kv_overlap_score_credit", o.Router.OverlapScoreCredit, 0, 1},
		{"router_kv_overlap_score_credit_decay", o.Router.OverlapScoreCreditDecay, 0, maxCreditDecay},
		{"restart", o.Restart.Seconds(), 0, maxRestart.Seconds()},
	})
}

// modes are those that the router knows.
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

func (c *Cluster) speculate(kind api.Speculation) {
	c.options.Speculation = kind
	c.speculation = c.profile.Speculation[kind]
	c.thresholds = c.speculation.thresholds()
	c.step = c.profile.Step.scaled(c.speculation.StepScale)
}

// Now is the present moment.
func (c *Cluster) Now() time.Duration { return c.clock.now }

// Next is the moment up to which nothing will happen by itself; false if nothing
// will happen at all.
func (c *Cluster) Next() (time.Duration, bool) { return c.clock.next() }

// Advance lets everything happen up to a moment, which is the present one
// afterwards. A moment that has passed changes nothing.
func (c *Cluster) Advance(until time.Duration) { c.clock.advance(until) }

// Submit hands a request to the frontend at the present moment: call
// [Cluster.Advance] first. The router decides at once. A request that could never
// be served gives an *[api.FieldError]; one that cannot be served now gives
// [ErrRestarting], [ErrNoWorkers] or [ErrNoInstance], and its observer hears
// nothing.
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
	c.clock.at(c.clock.now+milliseconds(c.profile.Frontend.In), j)
	o.Routed(d)
	return j, nil
}

func (c *Cluster) validate(r *Request) error {
	kv := c.profile.KV
	if err := first([]bound{
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

// elect sees which workers are ready, and which of them a request names, if it does.
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

// deliver lets tokens leave the frontend.
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

// end closes a job whose load is off the router's account.
func (c *Cluster) end(j *Job) {
	j.done = true
	j.report.Ended, j.report.OutputTokens = c.clock.now, j.delivered
	delete(c.jobs, j)
	j.observer.Finished(j.report)
}

// Cancel ends a request whose client has gone, with [ErrCancelled]. What it has
// computed of its prompt stays in the cache. A request that has ended stays as it is.
func (c *Cluster) Cancel(j *Job) {
	if j.done {
		return
	}
	j.worker.drop(j)
	j.report.Err = ErrCancelled
	c.router.free(j)
	c.end(j)
}

// State is what serves.
type State struct {
	Mode        api.Mode
	Speculation api.Speculation
	Calibrated  bool          // false: whatever is shown of it must say "not calibrated"
	Ready       bool          // false while the cluster restarts; requests get [ErrRestarting]
	ReadyAt     time.Duration // since when, or from when on
	Inflight    int           // requests that have not ended
}

// State is the cluster's state at the present moment.
func (c *Cluster) State() State {
	return State{
		Mode: c.router.mode, Speculation: c.options.Speculation, Calibrated: c.profile.CalibratedFor(c.options.Speculation),
		Ready: c.clock.now >= c.readyAt, ReadyAt: c.readyAt, Inflight: len(c.jobs),
	}
}

// Switch changes mode and speculation as on a real cluster, by a restart of
// everything: requests in progress fail with [ErrRestarting], caches and the
// router's knowledge are gone, and until [State].ReadyAt new requests are refused.
// It may be called during a restart, which begins anew. A mode or speculation that
// is not offered gives an *[api.FieldError] and changes nothing.
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

// Reroute restarts the frontend alone, with another mode of its router: requests in progress fail with [ErrRestarting],
// while the workers keep their caches, of which the router is told anew. A mode that is not offered gives an
// *[api.FieldError] and changes nothing.
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

// LoseWorker takes a worker away, as when its process is killed: its requests fail
// with [ErrWorkerLost], its cache is gone, and the router knows of it at once. After
// some time it is back, empty and under its old id. A worker that is away already
// stays away for so long from now. An id that no worker has gives [ErrNoInstance].
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

// fail ends jobs whose worker is lost, in the order in which they came.
func (c *Cluster) fail(err error, affected func(*Job) bool) {
	inOrder := func(a, b *Job) int { return cmp.Compare(a.serial, b.serial) }
	for _, j := range slices.SortedFunc(maps.Keys(c.jobs), inOrder) {
		if j.done || !affected(j) {
			continue // done: cancelled by the observer of one before it
		}
		j.worker.counters.Failed++
		j.report.Err = err
		c.router.free(j)
		c.end(j)
	}
}

// Workers are the workers' states at the present moment, in a fixed order.
func (c *Cluster) Workers() []WorkerStats {
	stats := make([]WorkerStats, 0, len(c.workers))
	for _, w := range c.workers {
		stats = append(stats, w.stats())
	}
	return stats
}

// RouterStats are the router's counters.
func (c *Cluster) RouterStats() RouterStats { return c.router.stats }

// Decisions are the last thousand, the oldest first. They are shared and must not
// be changed.
func (c *Cluster) Decisions() []*Decision { return c.router.kept() }
