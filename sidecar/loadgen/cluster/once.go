package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
)

// once leaves out of a reading what it holds a second time: the pages of a process that another page shows too, and
// the series of the ranks and priorities of one scheduler. The notes name pages whose workers cannot be told apart.
func once(samples []Sample) (kept []Sample, notes []string) {
	pages := pagesOf(samples)
	copies, notes := copiesOf(pages)
	kept = slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return ofWorker(s) && copies[pageOf(s)] })
	return onePerScheduler(kept), notes
}

// pageID names a metrics page: its address, and the scrape job through which a Prometheus reads it.
type pageID struct{ instance, job model.LabelValue }

func pageOf(s Sample) pageID { return pageID{s.Labels[model.InstanceLabel], s.Labels[model.JobLabel]} }

// shownProcess is what a metrics page says of the process behind it.
type shownProcess struct {
	pageID
	own, several bool // as in Sample
	strays       bool
	workers      map[string]bool // ids, of Dynamo
	engine       map[string]bool // the engine's own labels: model, data parallel rank and the like
	models       map[string]bool
	start        float64 // 0: not reported
	created      float64 // of its counters, 0: not reported; two processes hardly share it
	tokens       float64 // prompt tokens so far
	counts       bool    // it reports them
	leads        bool    // it has the first rank of a scheduler
	ranks        bool    // it has ranks, and no data parallel rank
}

// ofWorker says whether a sample belongs to the worker behind a page.
func ofWorker(s Sample) bool {
	return engineOf(s.Name) != "" ||
		workerID(s) != "" && slices.ContainsFunc([]metric{workerInflight, workerRequests, cacheUse},
			func(m metric) bool { return slices.Contains(m, s.Name) })
}

// pagesOf gives the pages with workers, those first that are no target's own.
func pagesOf(samples []Sample) []*shownProcess {
	found := map[pageID]*shownProcess{}
	var pages []*shownProcess
	starts := map[pageID]float64{}
	for _, s := range samples {
		if slices.Contains(processStart, s.Name) {
			starts[pageOf(s)] = s.Value
			continue
		}
		if !ofWorker(s) || isSecondEndpoint(s) {
			continue
		}
		p := found[pageOf(s)]
		if p == nil {
			p = &shownProcess{
				pageID: pageOf(s), workers: map[string]bool{}, engine: map[string]bool{},
				models: map[string]bool{},
			}
			found[p.pageID] = p
			pages = append(pages, p)
		}
		p.add(s)
	}
	for id, p := range found {
		p.start = starts[id]
	}
	slices.SortStableFunc(pages, func(a, b *shownProcess) int {
		return cmp.Or(-boolOrder(a.own, b.own), -boolOrder(a.several, b.several), cmp.Compare(a.instance, b.instance),
			cmp.Compare(a.job, b.job))
	})
	return pages
}

func (p *shownProcess) add(s Sample) {
	p.own, p.several, p.strays = p.own || s.own, p.several || s.several, p.strays || s.strays
	if id := workerID(s); id != "" {
		p.workers[id] = true
	}
	switch {
	case slices.Contains(countersCreate, s.Name):
		p.created = max(p.created, s.Value)
	case slices.Contains(prefixQueries, s.Name):
		p.tokens, p.counts = p.tokens+s.Value, true
	}
	if !slices.Contains(running, s.Name) { // one metric says enough of an engine's labels
		return
	}
	labels := []string{engineOf(s.Name)}
	for _, name := range []model.LabelName{"model_name", "engine", "engine_type", "dp_rank", "tp_rank", "pp_rank"} {
		labels = append(labels, string(s.Labels[name]))
	}
	p.engine[strings.Join(labels, "\x00")] = true
	p.models[string(s.Labels["model_name"])] = true
	rank := rankOf(s)
	p.leads = p.leads || strings.Trim(rank, "0/") == ""
	p.ranks = rank != "" && s.Labels["dp_rank"] == ""
}

// copiesOf gives the pages that show what another one shows. A page that has shown several processes in turn is a
// router's, and is left out; where some worker that it shows has no page of its own, a note says so.
func copiesOf(pages []*shownProcess) (copies map[pageID]bool, notes []string) {
	copies = map[pageID]bool{}
	byKey := map[string][]*shownProcess{}
	leaders := map[string]bool{}
	for _, p := range pages {
		if p.strays {
			notes = append(notes, fmt.Sprintf("%s shows the metrics of several processes in turn, so that they are left out; "+
				"name the page of each worker in cluster.metrics_urls", p.instance))
		}
		keys := p.keys()
		if p.several || slices.ContainsFunc(keys, func(k string) bool { return slices.ContainsFunc(byKey[k], p.shows) }) {
			copies[p.pageID] = true
			continue
		}
		if !p.own { // which is last
			keys = append(keys, p.looks())
		}
		for _, k := range keys {
			byKey[k] = append(byKey[k], p)
		}
		if p.leads {
			maps.Copy(leaders, p.models)
		}
	}
	// The further nodes of an engine that spans several have pages with the higher ranks of the first node's scheduler.
	for _, p := range pages {
		if p.ranks && !p.leads && slices.ContainsFunc(slices.Collect(maps.Keys(p.models)),
			func(m string) bool { return leaders[m] }) {
			copies[p.pageID] = true
		}
	}
	return copies, notes
}

// keys are the ways in which another page may show the same process.
func (p *shownProcess) keys() (keys []string) {
	switch {
	case len(p.workers) > 0:
		return []string{"workers " + text(p.workers)}
	case p.start+p.created > 0:
		keys = append(keys, "process "+strconv.FormatFloat(p.start, 'g', -1, 64)+" "+
			strconv.FormatFloat(p.created, 'g', -1, 64)+p.looks())
	case p.own:
		keys = append(keys, p.looks())
	}
	return append(keys, "address "+string(p.instance)+p.looks())
}

// looks are the engine's labels, by which pages that do not say more may be of one process.
func (p *shownProcess) looks() string { return "engine " + text(p.engine) }

func text(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), "\x01")
}

// shows says whether a page that may show the same process does. Processes that a script starts together can begin in
// the same moment, but do not count the same. The target's own page is another one's copy sooner than not.
func (p *shownProcess) shows(other *shownProcess) bool {
	const moment = 0.05 // of all tokens, between two pages that are read at the same time
	most := max(p.tokens, other.tokens)
	switch {
	case len(p.workers) > 0, p.created > 0, p.instance == other.instance:
		return true
	case p.start == 0 && other.start > 0:
		return false
	case p.own:
		return most-min(p.tokens, other.tokens) <= moment*most
	}
	return p.tokens == other.tokens && (most > 0 || !p.counts)
}

// onePerScheduler keeps one series of each scheduler: engines that divide a model among processes write each series
// once a rank of tensor, pipeline or expert parallelism, and all of them tell the same. A data parallel rank is a
// scheduler of its own. Where a series without a priority stands beside those with one, it is their sum.
func onePerScheduler(samples []Sample) []Sample {
	type choice struct {
		rank string
		sum  bool
	}
	best := map[seriesKey]choice{}
	divided := false
	for _, s := range samples {
		if engineOf(s.Name) == "" {
			continue
		}
		key, rank, sum := s.schedulerOf()
		divided = divided || rank != "" || !sum
		switch b, known := best[key]; {
		case !known || byRank(rank, b.rank) < 0:
			best[key] = choice{rank, sum}
		case rank == b.rank && sum && !b.sum:
			best[key] = choice{rank, true}
		}
	}
	if !divided {
		return samples
	}
	return slices.DeleteFunc(samples, func(s Sample) bool {
		if engineOf(s.Name) == "" {
			return false
		}
		key, rank, sum := s.schedulerOf()
		return rank != best[key].rank || best[key].sum && !sum
	})
}

// schedulerOf gives the series that a sample is a part of, its rank, and whether it counts all priorities.
func (s Sample) schedulerOf() (key seriesKey, rank string, sum bool) {
	if s.scheduler != 0 {
		return s.scheduler, s.rank, s.Labels["priority"] == ""
	}
	rest := model.LabelSet{}
	for name, value := range s.Labels {
		if !isRank(name) && name != "priority" {
			rest[name] = value
		}
	}
	return keyOf(Sample{Name: s.Name, Labels: rest}), rankOf(s), s.Labels["priority"] == ""
}

// isRank tells the labels of processes that work on the same requests.
func isRank(name model.LabelName) bool {
	return (name == "rank" || strings.HasSuffix(string(name), "_rank")) &&
		!slices.Contains([]model.LabelName{"dp_rank", "attn_dp_rank", "data_parallel_rank"}, name)
}

// rankOf gives the values of a sample's ranks, by the labels' names; "" where it has none.
func rankOf(s Sample) string {
	var names []model.LabelName
	for name, value := range s.Labels {
		if isRank(name) && value != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	ranks := make([]string, len(names))
	for i, name := range names {
		ranks[i] = string(s.Labels[name])
	}
	return strings.Join(ranks, "/")
}

func byRank(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "/"), strings.Split(b, "/"), byNumber)
}
