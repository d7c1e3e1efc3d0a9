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

// dedupe removes what a reading holds twice: the pages of a process that another page shows too, and the series of the
// further ranks and priorities of one scheduler. The notes name pages whose workers cannot be separated.
func dedupe(samples []Sample) (kept []Sample, notes []string) {
	kept, notes = leaveOutTurns(slices.Clone(samples))
	kept = leaveOutRelayed(kept)
	copies := findCopies(pagesOf(kept))
	kept = slices.DeleteFunc(kept, func(s Sample) bool { return isWorkerSample(s) && copies[pageOf(s)] })
	return onePerScheduler(kept), notes
}

// leaveOutTurns removes the pages that show several processes in turn, which are those of a router that passes each
// call on. A note names a page with a process that no other page shows.
func leaveOutTurns(samples []Sample) (kept []Sample, notes []string) {
	kept = slices.DeleteFunc(samples, func(s Sample) bool {
		if s.unlisted {
			notes = append(notes, fmt.Sprintf("%s shows the metrics of several processes in turn, so that they are left out; "+
				"name the page of each worker in cluster.metrics_urls", s.Labels[model.InstanceLabel]))
		}
		return s.several
	})
	slices.Sort(notes)
	return kept, slices.Compact(notes)
}

// pageID identifies the metrics page of a process, and the Prometheus job that scrapes it.
type pageID struct {
	place
	job model.LabelValue
}

func pageOf(s Sample) pageID { return pageID{placeOf(s), s.Labels[model.JobLabel]} }

// shownProcess describes the process behind a metrics page, as far as the page shows it.
type shownProcess struct {
	pageID
	own          bool            // see [Sample]
	workers      map[string]bool // ids of Dynamo instances
	engine       map[string]bool // the engine's labels: model, data parallel rank and others
	models       map[string]bool
	start        float64 // start time of the process; 0: not reported
	created      float64 // creation time of its counters, which two processes hardly share; 0: not reported
	tokens       float64 // prompt tokens so far
	countsTokens bool    // the page reports prompt tokens
	hasFirstRank bool    // the page has the first rank of a scheduler
	ranks        bool    // the page has ranks, and no data parallel rank
}

// isWorkerSample reports whether a sample belongs to the worker behind a page.
func isWorkerSample(s Sample) bool {
	return engineOf(s.Name) != "" ||
		workerID(s) != "" && slices.ContainsFunc([]metric{workerInflight, workerRequests, cacheUse},
			func(m metric) bool { return slices.Contains(m, s.Name) })
}

// pagesOf returns the pages with workers. The target's own page is last.
func pagesOf(samples []Sample) []*shownProcess {
	found := map[pageID]*shownProcess{}
	var pages []*shownProcess
	starts := map[pageID]float64{}
	for _, s := range samples {
		if slices.Contains(processStart, s.Name) {
			starts[pageOf(s)] = s.Value
			continue
		}
		if !isWorkerSample(s) || isSecondEndpoint(s) {
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
		return cmp.Or(-boolOrder(a.own, b.own), cmp.Compare(a.instance, b.instance),
			cmp.Compare(a.pod, b.pod), cmp.Compare(a.job, b.job))
	})
	return pages
}

func (p *shownProcess) add(s Sample) {
	p.own = p.own || s.own
	if id := workerID(s); id != "" {
		p.workers[id] = true
	}
	switch {
	case slices.Contains(countersCreate, s.Name):
		p.created = max(p.created, s.Value)
	case slices.Contains(prefixQueries, s.Name):
		p.tokens += s.Value
		p.countsTokens = true
	}
	if !slices.Contains(running, s.Name) { // the labels of one metric suffice
		return
	}
	labels := []string{engineOf(s.Name)}
	for _, name := range []model.LabelName{"model_name", "engine", "engine_type", "dp_rank", "tp_rank", "pp_rank"} {
		labels = append(labels, string(s.Labels[name]))
	}
	p.engine[strings.Join(labels, "\x00")] = true
	p.models[string(s.Labels["model_name"])] = true
	rank := rankOf(s)
	p.hasFirstRank = p.hasFirstRank || strings.Trim(rank, "0/") == ""
	p.ranks = rank != "" && s.Labels["dp_rank"] == ""
}

// findCopies returns the pages that repeat another page.
func findCopies(pages []*shownProcess) map[pageID]bool {
	copies := map[pageID]bool{}
	byKey := map[string][]*shownProcess{}
	leaders := map[string]bool{}
	for _, p := range pages {
		keys := p.keys()
		if slices.ContainsFunc(keys, func(k string) bool { return slices.ContainsFunc(byKey[k], p.sameProcess) }) {
			copies[p.pageID] = true
			continue
		}
		if !p.own { // the target's own page comes last, so its key is not needed
			keys = append(keys, p.labelKey())
		}
		for _, k := range keys {
			byKey[k] = append(byKey[k], p)
		}
		if p.hasFirstRank {
			maps.Copy(leaders, p.models)
		}
	}
	// An engine that spans several nodes has pages on the further nodes with the higher ranks of the first node's
	// scheduler.
	for _, p := range pages {
		if !p.ranks || p.hasFirstRank {
			continue
		}
		for model := range p.models {
			if leaders[model] {
				copies[p.pageID] = true
			}
		}
	}
	return copies
}

// keys returns the keys under which another page may show the same process.
func (p *shownProcess) keys() (keys []string) {
	switch {
	case len(p.workers) > 0:
		return []string{"workers " + joinSet(p.workers)}
	case p.start+p.created > 0:
		keys = append(keys, "process "+strconv.FormatFloat(p.start, 'g', -1, 64)+" "+
			strconv.FormatFloat(p.created, 'g', -1, 64)+p.labelKey())
	case p.own:
		keys = append(keys, p.labelKey())
	}
	return append(keys, "address "+string(p.instance)+p.labelKey())
}

// labelKey returns a key of the engine's labels. Pages that report nothing else may belong to one process.
func (p *shownProcess) labelKey() string { return "engine " + joinSet(p.engine) }

func joinSet(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), "\x01")
}

// sameProcess reports whether two pages with a common key show the same process. Processes that a script starts
// together may begin at the same moment, but their counts differ. The target's own page is assumed to be a copy.
func (p *shownProcess) sameProcess(other *shownProcess) bool {
	const moment = 0.05 // share of all tokens that two pages read at the same time may differ by
	most := max(p.tokens, other.tokens)
	switch {
	case p.instance == other.instance && p.pod != other.pod && p.pod != "" && other.pod != "":
		return false
	case len(p.workers) > 0, p.created > 0, p.instance == other.instance:
		return true
	case p.start == 0 && other.start > 0:
		return false
	case p.own:
		return most-min(p.tokens, other.tokens) <= moment*most
	}
	return p.tokens == other.tokens && (most > 0 || !p.countsTokens)
}

// onePerScheduler keeps one series of each scheduler. Engines that divide a model among processes write each series
// once for every rank of tensor, pipeline or expert parallelism, with the same value. A data parallel rank is a
// scheduler of its own. A series without a priority beside some with one is their sum.
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

// schedulerOf returns the key of the scheduler's series, the sample's rank, and whether it counts all priorities.
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

// isRank reports whether a label is the rank of a process that works on the same requests as the others.
func isRank(name model.LabelName) bool {
	return (name == "rank" || strings.HasSuffix(string(name), "_rank")) &&
		!slices.Contains([]model.LabelName{"dp_rank", "attn_dp_rank", "data_parallel_rank"}, name)
}

// rankOf returns the values of a sample's ranks in the order of the labels' names; "" where it has none.
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
