package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/shadow"
)

// nameWords is the number of words of a text that name it.
const nameWords = 6

// maxOpenings is the number of openings whose first words are remembered at most.
const maxOpenings = 4096

// opening is a beginning of prompts, by the first conversation that has it.
type opening struct {
	conversation string
	name         string // first words; empty until a second conversation has it
}

// openingDepths are the lengths of openings in tokens, the longest first.
var openingDepths = [...]int{openingSize, openingSize / 4, openingSize / 16}

// routed adds a turn whose blocks are known. Its opening is the longest one that another conversation has, too, or else
// the longest one. It is the last time that the turn has its texts.
func (r *rules) routed(t *Turn, blockTokens int) {
	for _, depth := range openingDepths {
		n := min(len(t.blocks), max(1, depth/blockTokens))
		if n == 0 {
			return
		}
		hash := t.blocks[n-1]
		if t.opening == 0 {
			t.opening = hash
		}
		known := r.openings[hash]
		if known == nil {
			if r.openings == nil || len(r.openings) >= maxOpenings {
				r.openings = map[uint64]*opening{}
			}
			r.openings[hash] = &opening{conversation: t.Conversation}
			continue
		}
		if known.name == "" && known.conversation != t.Conversation {
			known.name = prefixName(t)
		}
		if known.name != "" {
			t.opening = hash
			return
		}
	}
}

// prefixName returns the first words of the first message that is no system message, or of the last one.
func prefixName(t *Turn) (name string) {
	for role, text := range t.Messages {
		const enough = 400 // bytes
		words := strings.Fields(text[:min(len(text), enough)])
		name = strings.ToValidUTF8(strings.Join(words[:min(nameWords, len(words))], " "), "")
		if role != "system" {
			break
		}
	}
	return name
}

// prefix is how often turns have an opening, also by worker.
type prefix struct {
	turns   int
	workers map[uint64]int
}

// hot returns the openings that several conversations and at least herdShare of the turns have.
func (r *rules) hot(prefixes map[uint64]*prefix, workers map[uint64]*api.WorkerWork, turns int) []api.HotPrefix {
	all := []api.HotPrefix{}
	for hash, p := range prefixes {
		share, known := float64(p.turns)/float64(turns), r.openings[hash]
		if known == nil || known.name == "" || share < herdShare {
			continue
		}
		id := slices.MaxFunc(slices.Sorted(maps.Keys(p.workers)), func(a, b uint64) int {
			return cmp.Compare(p.workers[a], p.workers[b])
		})
		all = append(all, api.HotPrefix{
			Name: known.name, Share: share, Worker: workers[id].Worker, WorkerShare: float64(p.workers[id]) / float64(p.turns),
		})
	}
	slices.SortFunc(all, func(a, b api.HotPrefix) int { return cmp.Compare(b.Share, a.Share) })
	return all
}

// work says how the work of the turns that ended in the last 60 s is divided between the workers that the cluster
// lists, and others, by the ids of names known; nil without such turns.
func (r *rules) work(now time.Time, listed []api.Worker, known map[string]string) *api.ShadowWork {
	names := map[uint64]string{}
	for name, id := range known {
		names[workerNumber(id)] = name
	}
	prefixes, workers, turns, prompt := map[uint64]*prefix{}, map[uint64]*api.WorkerWork{}, 0, 0
	listed = identified(listed, known)
	for i := range listed {
		workers[workerNumber(listed[i].ID)] = &api.WorkerWork{Worker: listed[i].Name}
	}
	for i := range min(r.n, keptTurns) {
		t := &r.turns[i]
		if t.uncached < 0 || t.worker == 0 || now.Sub(t.at) > shadow.Window {
			continue
		}
		turns++
		prompt += t.prompt
		w := workers[t.worker]
		if w == nil {
			w = &api.WorkerWork{Worker: cmp.Or(names[t.worker], fmt.Sprint(t.worker))}
			workers[t.worker] = w
		}
		w.Turns++
		w.UncachedTokens += t.uncached
		p := prefixes[t.opening]
		if p == nil {
			p = &prefix{workers: map[uint64]int{}}
			prefixes[t.opening] = p
		}
		p.turns++
		p.workers[t.worker]++
	}
	if turns == 0 {
		return nil
	}
	s := &api.ShadowWork{}
	most, sum := &api.WorkerWork{}, 0
	for _, w := range workers {
		s.Workers = append(s.Workers, *w)
		sum += w.UncachedTokens
		if w.UncachedTokens > most.UncachedTokens {
			most = w
		}
	}
	slices.SortFunc(s.Workers, func(a, b api.WorkerWork) int { return cmp.Compare(a.Worker, b.Worker) })
	s.Hot = r.hot(prefixes, workers, turns)
	describe(s, turns, ratio(int64(sum), int64(prompt)), sum, most)
	return s
}

// Where less than fewUncached of the prompt tokens had to be computed, a few turns decide which worker computed most:
// it is named only if it also had moreTurns than the mean.
const (
	fewUncached = .2
	moreTurns   = 1.2
)

// describe sets the sentence on a worker that has much more work than the others. sum is the work of all, and uncached
// its share of the prompt tokens.
func describe(s *api.ShadowWork, turns int, uncached float64, sum int, most *api.WorkerWork) {
	if turns < api.MinMeasured || sum == 0 {
		return
	}
	s.Skew = float64(most.UncachedTokens*len(s.Workers)) / float64(sum)
	busier := float64(most.Turns*len(s.Workers)) / float64(turns)
	if s.Skew < muchBusier || uncached < fewUncached && busier < moreTurns {
		return
	}
	s.Text = fmt.Sprintf("worker %s computed %s of the prompt tokens that were not cached, and each of %d would have %s "+
		"if they were even", most.Worker, percent(float64(most.UncachedTokens)/float64(sum)), len(s.Workers),
		percent(1/float64(len(s.Workers))))
	s.Remedy = "choose a policy that counts the tokens that a worker still has to compute"
	for i := range s.Hot {
		p := &s.Hot[i]
		if p.Worker == most.Worker {
			s.Text += "; " + hot(p)
			s.Remedy = "let the router copy this beginning to more workers: give the match less weight against the load, or " +
				"lower the imbalance from which it goes by load"
			return
		}
	}
}

// hot is a clause on a hot prefix.
func hot(p *api.HotPrefix) string {
	return fmt.Sprintf("%s of the turns begin with “%s …”, and %s of these went to worker %s", percent(p.Share), p.Name,
		percent(p.WorkerShare), p.Worker)
}
