package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/draw"
)

// The questions of a workload in tokens, with the chat template, as the tokenizer of sim counts them: see
// TestQuestionTokensAreThoseOfTheSimulation.
var (
	fixedQuestion    = api.Distribution{Mean: 14}          // "elaborate further"
	builtInQuestions = api.Distribution{Mean: 24, CV: .11} // the built-in questioner's
)

// sameSentence is the follow-up question of the recorded results.
const sameSentence = "elaborate further"

// startRate is the load generator's rate, in new conversations per second.
const startRate = 10

// workloadOf returns the recorded workload with the built-in articles, whose first prompts have the same number of
// tokens as at the cluster.
func workloadOf(level int, seed uint64, questions api.Distribution) (closedloop.Workload, error) {
	articles, err := corpus.Builtin()
	if err != nil {
		return closedloop.Workload{}, err
	}
	w := closedloop.Recorded()
	w.Level, w.Seed, w.StartRate, w.QuestionTokens = api.AtConversations(level), seed, startRate, questions
	w.Openings, w.OpeningTokens = len(articles.Starters), nil
	for _, s := range articles.Starters {
		question := corpus.BuiltinQuestioner{}.Open(draw.Random(1), s.Topic)
		prompt := sim.RenderChat([]sim.Message{{Role: "user", Content: s.Text + "\n\n" + question}})
		w.OpeningTokens = append(w.OpeningTokens, sim.Count(prompt))
	}
	return w, nil
}

// coreSeeds is the number of seeds with which the core runs a setting.
const coreSeeds = 12

// part selects the turns of a run, in the order of their ends: the first warmUp turns are not measured, the next
// measured turns are. It counts turns instead of seconds, since conversations of a slower cluster are at earlier
// turns at the same time.
type part struct{ warmUp, measured int }

// core runs a setting in virtual time on a cluster with cold caches, once for each of [coreSeeds] seeds. With
// sameDraws, the conversations are the same in each run; otherwise each run has its own.
func core(s setting, o sim.Options, w closedloop.Workload, sameDraws bool, read part) (runs []result, err error) {
	o.Mode = s.mode
	seed := w.Seed
	for i := range uint64(coreSeeds) {
		o.Seed = 1 + i
		if !sameDraws {
			w.Seed = seed + i
		}
		r, err := coreRun(o, w, read)
		if err != nil {
			return nil, fmt.Errorf("%v, seed %d: %w", s, o.Seed, err)
		}
		runs = append(runs, r)
	}
	return runs, nil
}

func coreRun(o sim.Options, w closedloop.Workload, read part) (result, error) {
	loop, err := closedloop.New(o, w)
	if err != nil {
		return result{}, err
	}
	for len(loop.Turns()) <= read.warmUp+read.measured {
		if err := loop.Run(loop.Cluster.Now() + time.Second); err != nil {
			return result{}, err
		}
	}
	began := time.Unix(0, 0)
	turns := make([]api.Turn, 0, len(loop.Turns()))
	for i := range loop.Turns() {
		turns = append(turns, turnOf(&loop.Turns()[i], began))
	}
	from, to := loop.Turns()[read.warmUp].Ended, loop.Turns()[read.warmUp+read.measured].Ended
	r := summarize(turns, began.Add(from), began.Add(to))
	var spreads []float64
	for _, second := range loop.Seconds()[from/time.Second : to/time.Second] {
		spreads = append(spreads, float64(second.Most-second.Least))
	}
	r.spread = stat.Mean(spreads, nil)
	return r, nil
}

// turnOf converts a turn of the core to a turn of the load generator.
func turnOf(t *closedloop.Turn, began time.Time) api.Turn {
	turn := api.Turn{
		Conversation: strconv.FormatInt(t.Conversation, 10), Number: t.Number, Status: api.TurnOK, Ended: began.Add(t.Ended),
		TTFT: new(t.TTFT().Seconds()), PromptTokens: new(t.PromptTokens), CachedTokens: new(t.CachedTokens),
		OutputTokens: new(t.OutputTokens), Worker: strconv.FormatUint(uint64(t.Decision.Worker().Worker), 10),
	}
	if tpot, ok := t.TPOT(); ok {
		turn.TPOT = new(tpot.Seconds())
	}
	return turn
}

// band describes a figure's values in several runs of the core.
type band struct {
	mean          float64
	lowest, most  float64
	deviation     float64 // standard, of one run
	run95, run999 float64 // half the width of the prediction interval of one further run, 95 % and 99.9 %
}

// bandOf computes the band of a figure. The half width of the prediction interval is t·s·√(1+1/n), with Student's t
// for n−1 degrees of freedom; see Hahn and Meeker, "Statistical Intervals" (1991), section 4.3.
func bandOf(runs []result, of func(*result) float64) band {
	var values []float64
	for i := range runs {
		values = append(values, of(&runs[i]))
	}
	b := band{lowest: slices.Min(values), most: slices.Max(values)}
	b.mean, b.deviation = stat.MeanStdDev(values, nil)
	n := float64(len(runs))
	wide := b.deviation * math.Sqrt(1+1/n)
	b.run95, b.run999 = student95*wide, student999*wide
	return b
}

// Student's t for coreSeeds − 1 = 11 degrees of freedom, two-sided.
const (
	student95  = 2.201
	student999 = 4.437
)
