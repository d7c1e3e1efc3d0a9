package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"

	"github.com/stretchr/testify/assert"
)

func difference(m proof.Metric, by, low, high float64, outcome proof.Verdict) api.TrialDifference {
	d := api.TrialDifference{Metric: string(m), A: .643, B: .643 * (1 + by), Difference: by, Interval: &[2]float64{
		low, high,
	}, Outcome: string(outcome)}
	if m.Share() {
		d.A, d.B = .87, .87+by
	}
	return d
}

// A difference that changes while spans count is a doubt, with what to do.
func TestAfterEffectIsNamed(t *testing.T) {
	s := looked()
	assert.NotContains(t, Words(&s)[0], "after-effects")
	s.Trial.AfterEffect = &api.TrialAfterEffect{First: -.12, Rest: -.21, Interval: [2]float64{.05, .16}}
	assert.Equal(t, "In the first third of what counts of each span, TTFT p95 of KV-aware is 12.0 % lower, in the rest "+
		"21.0 % lower, and that change is certain (+5.0 to +16.0 %): a change of arm has after-effects on what was "+
		"measured. Ask again with a longer warm-up (warm_up).", Words(&s)[0])
}

// notWorse says of a difference that B is not worse.
func notWorse(d api.TrialDifference) api.TrialDifference {
	d.NotWorse = []api.TrialArm{"b"}
	return d
}

// tried is a trial as it stands.
func tried(v proof.Verdict, primary *api.TrialDifference, others ...api.TrialDifference) api.Sweep {
	s := swept(api.SweepTrial, 120)
	s.Request.Repeats, s.Request.Order, s.Request.WarmUp, s.Request.Snapshots, s.Request.MaxSeconds = nil, nil, nil,
		nil, new(3600.)
	s.Progress.Of = nil
	s.Trial = &api.TrialState{Method: api.TrialOnBlocks, Verdict: string(v), Blocks: 2, Primary: primary, Others: others}
	if v == proof.Running {
		s.State = api.SweepRunning
	}
	return s
}

// looked is a trial with two metrics beside the deciding one and both of its looks.
func looked() api.Sweep {
	s := tried(proof.BBetter, new(difference(proof.TTFT95, -.194, -.232, -.151, proof.BBetter)),
		difference(proof.Goodput, .02, -.1, .1, proof.Running), difference(proof.Throughput, .06, .04, .08, proof.BBetter))
	s.Rows = crossed().Rows[2:4]
	s.Trial.Failures = &api.TrialFailures{A: api.TrialFailed{Failed: 3, Ended: 1000}, B: api.TrialFailed{
		Failed: 1, Ended: 1000,
	}}
	s.Trial.Final = &api.TrialFinal{Difference: -.18, Interval: [2]float64{-.22, -.14}}
	s.Spans = []api.SweepSpan{{Number: 0, Attempt: 1, Arm: "a", Mode: kv, Level: api.AtConversations(120), Cold: "nonce"}}
	s.Trial.Guards = []api.TrialDifference{{
		Metric: string(proof.AnswerTokens), A: 210, B: 208, Difference: -.0095, Interval: &[2]float64{-.03, .01},
		Outcome: string(proof.Running),
	}}
	s.Trial.Spans = []api.TrialSpan{{Number: 0, Value: .641}, {Number: 1, Value: .52}}
	s.Trial.Boundaries = [2]float64{-.047619, .05}
	s.Trial.Looks = []api.TrialLook{
		{Blocks: 2, Difference: -.25},
		{Blocks: 3, Difference: -.194, Interval: &[2]float64{-.232, -.151}},
	}
	return s
}

// ranked is a trial of three modes: KV-aware is the best, and the others are alike.
func ranked(v proof.Verdict) api.Sweep {
	least := api.ModeState{Mode: api.ModeLeastLoaded, Speculation: api.SpeculationOff}
	s := tried(v, new(difference(proof.TTFT95, -.194, -.232, -.151, proof.BBetter)),
		notWorse(difference(proof.Throughput, .06, .04, .08, proof.BBetter)))
	s.Request.Modes = append(s.Request.Modes, least)
	s.Rows = append(crossed().Rows[2:4], measured(120, least, .58, 2700, .02))
	s.Spans = []api.SweepSpan{
		{Number: 0, Attempt: 1, Arm: "c", Mode: least, Level: api.AtConversations(120), Cold: "nonce"},
	}
	s.Trial.Looks = []api.TrialLook{{Blocks: 2, Difference: -.194, Interval: &[2]float64{-.232, -.151}}}
	s.Trial.Boundaries = [2]float64{-.047619, .05}
	place := func(arm api.TrialArm, m api.ModeState, from, to int, mean float64, left *int) api.TrialPlace {
		return api.TrialPlace{
			Arm: arm, Mode: m, Place: [2]int{from, to}, Mean: &mean, LeftAfter: left, MayBeBest: from == 1,
			Failures: api.TrialFailed{Ended: 500},
		}
	}
	pair := func(a, b api.TrialArm, d api.TrialDifference) api.TrialPair {
		tokens := map[api.TrialArm]float64{"a": 210, "b": 208, "c": 209}
		return api.TrialPair{A: a, B: b, Blocks: 2, Primary: d, Guards: []api.TrialDifference{{
			Metric: string(proof.AnswerTokens), A: tokens[a], B: tokens[b], Outcome: string(proof.Running),
		}}}
	}
	s.Trial.Ranking = &api.TrialRanking{
		Question: api.QuestionBest,
		Places: []api.TrialPlace{
			place("b", kv, 1, 1, .518, nil), place("c", least, 2, 3, .643, new(2)), place("a", roundRobin, 2, 3, .648, new(2)),
		},
		Pairs: []api.TrialPair{
			pair("c", "b", *s.Trial.Primary), pair("a", "b", difference(proof.TTFT95, -.2, -.24, -.16, proof.BBetter)),
			pair("a", "c", difference(proof.TTFT95, -.008, -.04, .03, proof.NoDifference)),
		},
		Groups: []api.TrialGroup{{Arms: []api.TrialArm{"c", "a"}}},
	}
	return s
}

// rankedOpen is such a trial of which nothing is decided.
func rankedOpen(v proof.Verdict) api.Sweep {
	s := ranked(v)
	for i := range s.Trial.Ranking.Places {
		p := &s.Trial.Ranking.Places[i]
		p.Place, p.LeftAfter, p.MayBeBest = [2]int{1, 3}, nil, i < 2
	}
	for i := range s.Trial.Ranking.Pairs {
		s.Trial.Ranking.Pairs[i].Primary.Outcome = string(proof.Running)
	}
	s.Trial.Ranking.Groups = nil
	return s
}

func capacity(crossing *api.Crossing, modes ...api.ModeCapacity) api.Sweep {
	s := swept(api.SweepCapacity, 60, 180)
	s.Request.Resolution = new(5.)
	s.Capacity = &api.Capacity{Modes: modes, Crossing: crossing}
	return s
}

func modeCapacity(m api.ModeState, level, low, high int) api.ModeCapacity {
	return api.ModeCapacity{
		Mode:     m,
		Level:    new(api.AtConversations(level)),
		Interval: &[2]api.Level{api.AtConversations(low), api.AtConversations(high)},
		Tested:   []api.LevelTest{{Level: api.AtConversations(level), Spans: 3, Verdict: "meets"}},
	}
}

// searched is a capacity search with a value in every column of its table.
func searched() api.Sweep {
	isolated, unsure := modeCapacity(roundRobin, 96, 90, 100), modeCapacity(kv, 0, 0, 28)
	isolated.Isolated, unsure.Above = api.LevelsOf(130), true
	unsure.Tested = []api.LevelTest{{Level: api.AtConversations(14), Spans: 8, Verdict: "open"}, {
		Level: api.AtConversations(28), Spans: 3, Verdict: "misses",
	}}
	above := modeCapacity(kv, 180, 180, 180)
	above.Above, above.Interval = true, nil
	return capacity(
		&api.Crossing{
			Level:    new(api.AtConversations(148)),
			Interval: &[2]api.Level{api.AtConversations(140), api.AtConversations(160)},
			Below:    "b",
		},
		isolated,
		above,
		unsure,
	)
}

// Words of every kind of sweep are as those in testdata, which hold a line for each sentence.
func TestWords(t *testing.T) {
	lower, higher := difference(proof.TTFT95, -.194, -.232, -.151, proof.BBetter), difference(proof.TTFT95, 2.858, 1.9,
		4.1, proof.ABetter)
	open, goodput := difference(proof.TTFT95, -.08, -.2, .05, proof.Running), difference(proof.Goodput, .12, .08, .16,
		proof.BBetter)
	alike := difference(proof.TTFT95, -.008, -.021, .005, proof.NoDifference)
	late := tried(proof.Running, &open)
	late.Progress.Beyond = true
	noLook := tried(proof.Running, nil)
	noLook.Trial.Blocks, noLook.Trial.Detectable = 1, &api.TrialDetectable{
		Difference: .12, Power: .8, Seconds: 1800, Trial: "x",
	}
	short := tried(proof.TimeOver, nil)
	short.Trial.Blocks, short.Trial.BlockSeconds = 1, 2400
	known, contradicted := tried(proof.BBetter, &lower), tried(proof.BBetter, &lower)
	known.Trial.Prior = &api.TrialPrior{Trials: 4}
	contradicted.Trial.Prior = &api.TrialPrior{Trials: 1, Contradicted: true}
	traded := difference(proof.TTFT95, -.194, -.232, -.151, proof.TradeOff)
	failing := tried(proof.TradeOff, &traded, difference(proof.Goodput, .28, .2, .36, proof.TradeOff))
	failing.Trial.Failures = &api.TrialFailures{A: api.TrialFailed{Ended: 900}, B: api.TrialFailed{
		Failed: 30, Ended: 900,
	}, More: "b"}
	failing.Spans = []api.SweepSpan{{Arm: "b", Mode: failing.Request.Modes[1], Failed: 30, Actual: new(97.)}}
	refusing, unequal := tried(proof.BFailsMore, &alike), tried(proof.AFailsMore, &open)
	refusing.Trial.Failures = &api.TrialFailures{
		A: api.TrialFailed{Ended: 900}, B: api.TrialFailed{Failed: 30, Ended: 900}, More: "b", Difference: .0333,
		Interval: &[2]float64{.011, .056},
	}
	unequal.Trial.Failures = &api.TrialFailures{
		A: api.TrialFailed{Failed: 9, Ended: 900}, B: api.TrialFailed{Failed: 1, Ended: 900}, More: "a",
		Difference: -.0089, Interval: &[2]float64{-.017, -.001},
	}
	unequal.Trial.Succeeded = true
	shortened := tried(proof.TradeOff, &traded)
	shortened.Trial.Guards = []api.TrialDifference{{
		Metric: string(proof.AnswerTokens), A: 210, B: 130, Difference: -.381, Interval: &[2]float64{-.412, -.35},
		Outcome: string(proof.Unlike),
	}, {
		Metric: string(proof.StopShare), A: .2, B: .59, Difference: .39, Interval: &[2]float64{.33, .45},
		Outcome: string(proof.Unlike),
	}}
	ended := tried(proof.TradeOff, &traded)
	ended.Trial.Guards = shortened.Trial.Guards[1:]
	costly := tried(proof.TradeOff, &traded)
	costly.Trial.Worse = []api.TrialDifference{
		difference(proof.Throughput, -.16, -.19, -.13, proof.Running), difference(proof.Energy, .2, .15, .25, proof.Running),
	}
	kept := tried(proof.BBetter, &lower)
	kept.Trial.KeepsLanes = true
	for i, arm := range []string{"a", "b"} {
		kept.Spans = append(kept.Spans, api.SweepSpan{
			Arm: arm, Mode: kept.Request.Modes[i], Target: "http://" + arm, Level: api.AtConversations(120),
			Lane: []string{api.DefaultLane, api.TwinLane}[i], Actual: new(97.),
		})
	}
	doubted := tried(proof.BBetter, &lower)
	for i, arm := range []string{"a", "b", "b"} {
		doubted.Spans = append(doubted.Spans, api.SweepSpan{
			Arm: arm, Mode: doubted.Request.Modes[min(i, 1)], Level: api.AtConversations(120), Workers: 3 - min(i, 1),
		})
	}
	doubted.Spans[1].Doubts = []string{"all turns went to one worker of 2"}
	for i, port := range []string{"41234", "41236"} {
		doubted.Spans[1+i].Warnings = []string{"the caches could not be emptied, so a nonce makes the prefixes cold: " + port}
	}
	for i := range 2 {
		s := &doubted.Spans[i]
		s.Warnings = append(s.Warnings, "the start rate of 10 conversations/s held the load down")
	}
	shared := tried(proof.BBetter, &lower)
	shared.Spans = []api.SweepSpan{
		{Arm: "a", SharedWorkers: []string{"w1", "w2", "w3", "w4"}}, {Arm: "b", SharedWorkers: []string{"w1", "w5", "w6"}},
	}
	mocked := tried(proof.BBetter, &lower)
	mocked.Deployment.Kind = api.TargetMocked
	pairs := tried(proof.BBetter, &lower)
	pairs.Trial.Method, pairs.Trial.Pairs, pairs.Trial.Blocks, pairs.Words = api.TrialOnPairs, 2, 0,
		[]string{"As it was stored."}
	sameMode := tried(proof.BBetter, &lower) // modes that differ in speculation alone get distinct names
	sameMode.Request.Modes = []api.ModeState{kv, {Mode: api.ModeKV, Speculation: api.SpeculationEagle3}}

	order := ranked(proof.Order)
	order.Request.Question, order.Trial.Ranking.Question = new(api.QuestionOrder), api.QuestionOrder
	alikeBest := ranked(proof.NoDifference) // KV-aware and least loaded, both of which are better than round-robin
	alikeBest.Trial.Ranking.Pairs[0].Primary = alike
	for i, place := range [][2]int{{1, 2}, {1, 2}, {3, 3}} {
		alikeBest.Trial.Ranking.Places[i].Place = place
	}
	two := ranked(proof.TimeOver) // both are better than round-robin
	two.Trial.Ranking.Pairs[0].Primary, two.Trial.Primary = open, &open
	two.Trial.Ranking.Pairs[2].Primary = difference(proof.TTFT95, -.1, -.14, -.06, proof.BBetter)
	two.Trial.Ranking.Pairs[2].A, two.Trial.Ranking.Pairs[2].B = "a", "c"
	two.Trial.Ranking.Places[1].MayBeBest, two.Trial.Ranking.Groups = true, nil
	for i, place := range [][2]int{{1, 2}, {1, 2}, {3, 3}} {
		two.Trial.Ranking.Places[i].Place = place
	}
	worse := rankedOpen(proof.Running) // round-robin is worse than KV-aware alone
	worse.Trial.Ranking.Pairs[1].Primary.Outcome = string(proof.BBetter)
	cut := ranked(proof.TradeOff)
	for i := range cut.Trial.Ranking.Pairs[:2] {
		p := &cut.Trial.Ranking.Pairs[i]
		p.Guards, p.Primary.Outcome = shortened.Trial.Guards, string(proof.TradeOff)
	}
	answered := rankedOpen(proof.TimeOver)
	answered.Trial.Succeeded, answered.Trial.Primary.Metric = true, string(proof.MeanTTFT)
	gone := ranked(proof.TradeOff) // round-robin does not serve any more, and answers of the others differ
	gone.Trial.Ranking.Pairs, gone.Trial.Ranking.Groups = gone.Trial.Ranking.Pairs[:1], nil
	last := &gone.Trial.Ranking.Places[2]
	last.Place, last.LeftAfter = [2]int{3, 3}, new(1)
	last.Gone = "the change to Round-robin failed: connection refused; is the server running?"
	gone.Trial.Ranking.Pairs[0].Primary.Outcome = string(proof.TradeOff)
	gone.Trial.Ranking.Pairs[0].Guards = []api.TrialDifference{{
		Metric: string(proof.AnswerTokens), Difference: 9.7, Interval: &[2]float64{1.85, 39.1}, Outcome: string(proof.Unlike),
	}}
	costlier := ranked(proof.TradeOff) // the best one is worse in throughput than another
	costlier.Trial.Ranking.Pairs[0].Worse = costly.Trial.Worse[:1]
	costlier.Trial.Ranking.Pairs[0].Primary.Outcome = string(proof.TradeOff)
	slow := ranked(proof.TradeOff) // the best one fails more turns than another
	slow.Trial.Ranking.Pairs[1].More, slow.Trial.Ranking.Pairs[1].Primary.Outcome = "b", string(proof.TradeOff)
	slow.Trial.Ranking.Places[0].Failures.Failed = 20
	differ := ranked(proof.FailuresDiffer) // two are alike by the metric, and one of them fails more turns
	differ.Trial.Ranking.Pairs[0].Primary, differ.Trial.Ranking.Pairs[0].More = alike, "b"
	differ.Trial.Ranking.Places[0].Failures.Failed = 20

	found, crossing := modeCapacity(kv, 128, 120, 135), &api.Crossing{
		Level: new(
			api.AtConversations(148),
		),
		Interval: &[2]api.Level{api.AtConversations(140), api.AtConversations(160)},
		Below:    "b",
	}
	round, isolated := modeCapacity(roundRobin, 96, 90, 100), modeCapacity(roundRobin, 96, 90, 100)
	isolated.Isolated = api.LevelsOf(130)
	above, openAbove := modeCapacity(kv, 180, 180, 180), modeCapacity(kv, 137, 90, 180)
	above.Above, above.Interval, openAbove.Above = true, nil, true
	unsure := modeCapacity(kv, 0, 0, 28)
	unsure.Tested = []api.LevelTest{{Level: api.AtConversations(14), Spans: 8, Verdict: "open"}, {
		Level: api.AtConversations(28), Spans: 3, Verdict: "misses",
	}}
	running := capacity(nil, modeCapacity(kv, 120, 60, 180), api.ModeCapacity{Mode: roundRobin})
	running.State = api.SweepRunning
	sweeps := map[string]api.Sweep{
		"trial, B better":                    tried(proof.BBetter, &lower),
		"trial, B better by a share":         tried(proof.BBetter, &goodput),
		"trial, A better":                    tried(proof.ABetter, &higher),
		"trial, no difference":               tried(proof.NoDifference, &alike),
		"trial, time over":                   tried(proof.TimeOver, &open),
		"trial, time over, one block":        short,
		"trial, earlier trials":              known,
		"trial, contradicted earlier trials": contradicted,
		"trial, trade-off":                   failing,
		"trial, B fails more":                refusing,
		"trial, A fails more":                unequal,
		"trial, costlier":                    costly,
		"trial, shorter answers":             shortened,
		"trial, other finish reasons":        ended,
		"trial, each lane its mode":          kept,
		"trial, doubted":                     doubted,
		"trial, workers in common":           shared,
		"trial, mocked":                      mocked,
		"trial, on pairs":                    pairs,
		"trial, running":                     tried(proof.Running, &open),
		"trial, running out of time":         late,
		"trial, running, no look yet":        noLook,
		"trial, one mode twice":              sameMode,
		"trial, trade-offs of B": tried(proof.BBetter, &lower, difference(proof.TPOT95, .04, .01, .07, proof.ABetter),
			notWorse(difference(proof.Throughput, .06, .04, .08, proof.BBetter)), difference(proof.HitRate, .091, .08,
				.1, proof.BBetter),
			difference(proof.TTFT50, .01, -.02, .03, proof.NoDifference), difference(proof.Goodput, .02, -.1, .1,
				proof.Running)),
		"trial, trade-offs of A": tried(proof.ABetter, &higher, difference(proof.Throughput, .25, .1, .6, proof.BBetter),
			difference(proof.HitRate, .05, .03, .07, proof.BBetter), difference(proof.TPOT95, .25, .25, .25, proof.ABetter)),
		"trial, others of neither": tried(proof.TimeOver, &open,
			difference(proof.Goodput, -.02, -.03, -.01, proof.ABetter)),
		"trial of three, best":          ranked(proof.Best),
		"trial of three, order":         order,
		"trial of three, trade-off":     slow,
		"trial of three, costlier":      costlier,
		"trial of three, cut answers":   cut,
		"trial of three, failures":      differ,
		"trial of three, one is gone":   gone,
		"trial of three, answered":      answered,
		"trial of three, two are left":  two,
		"trial of three, one is worse":  worse,
		"trial of three, no difference": alikeBest,
		"trial of three, time over":     rankedOpen(proof.TimeOver),
		"trial of three, running":       rankedOpen(proof.Running),
		"capacity, found":               capacity(crossing, round, found),
		"capacity, isolated":            capacity(nil, isolated, above),
		"capacity, one has none":        capacity(nil, modeCapacity(roundRobin, 0, 0, 60), found),
		"capacity, neither":             capacity(nil, modeCapacity(kv, 0, 0, 60)),
		"capacity, unsure":              capacity(nil, unsure),
		"capacity, one unsure":          capacity(nil, round, unsure),
		"capacity, open above": capacity(
			&api.Crossing{
				Level:    new(api.AtConversations(167)),
				Interval: &[2]api.Level{api.AtConversations(150), api.AtConversations(180)},
				Above:    true,
				Below:    "a",
			},
			openAbove,
			isolated,
		),
		"capacity, running": running,
		"capacity, nothing": capacity(nil),
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sweeps)) {
		sweep := sweeps[name]
		r := OfSweep(sweep)
		assert.Equal(t, Words(&sweep), r.Words)
		selfContained(t, written(t, r, api.ReportHTML))
		fmt.Fprintf(&all, "%s\n  %s\n", name, strings.Join(r.Words, "\n  "))
	}
	golden(t, "words.txt", all.String())
}

// One span spoiled after the other is said in front, and an operator who paused it is no cause.
func TestWordsOfAnUnfinishedTrial(t *testing.T) {
	s := tried(proof.Running, nil)
	s.Trial.Blocks = 0
	s.Spans = []api.SweepSpan{{Arm: "a"}, {Number: 1, Spoiled: "its caches were not cold"}}
	s.Progress.Spans = 1
	const nothing = "Not known yet: 0 of 2 whole blocks before the first look."
	assert.Equal(t, []string{nothing}, Words(&s))
	s.Spans = append(s.Spans, api.SweepSpan{
		Number: 1, Attempt: 2, Spoiled: "the load generator itself was late; give it more CPU",
	})
	assert.Equal(t, []string{
		nothing,
		"The latest 2 spans do not count, the last one because: the load generator itself was late; give it more CPU.",
	}, Words(&s))
	s.State, s.Reason, s.Cause = api.SweepPaused, "by ann, who stopped the workload", api.CauseOperator
	assert.Equal(t, "Paused by ann, who stopped the workload, with 1 span measured.", Words(&s)[1])
	s.Reason, s.Cause = "the target failed in a span twice", api.CauseTarget
	assert.Equal(t, "Paused, with 1 span measured: the target failed in a span twice.", Words(&s)[1])
}

// Before the first look, a report begins with the deciding metric of each arm so far, and ends with the setup.
func TestReportBeginsWithWhatDecides(t *testing.T) {
	s := tried(proof.Running, nil)
	s.Rows, s.Trial.Blocks, s.Trial.FirstLook, s.Progress.Spans = crossed().Rows[2:4], 1, 2, 3
	r := OfSweep(s)
	assert.Equal(t, "Not known yet: TTFT p95 is 595 ms under Round-robin and 590 ms under KV-aware so far, after 1 of 2 "+
		"whole blocks before the first look.", r.Words[0])
	all := r.Document().Sections
	assert.Equal(t, "TTFT p95, which decides", all[1].Charts[0].Title)
	assert.Len(t, all[1].Charts[0].Marks, 2)
	assert.Equal(t, "Setup", all[len(all)-1].Title)
	assert.NotContains(t, markdownOf(t, r), "sustains nothing")
}

// A difference that rounds to 0 has no direction, and times more than twice as long are no per cent.
func TestChangesInWords(t *testing.T) {
	d := difference(proof.TTFT95, 0, -.02, .03, proof.Running)
	assert.Equal(t, "TTFT p95 of kv differs by 0.0 % (2.0 % lower to 3.0 % higher)", changeOf(&d, true, " of kv"))
	d = difference(proof.TTFT95, 2.3, 1.9, 2.8, proof.ABetter)
	assert.Equal(t, "TTFT p95 is 3.3 times as long (2.9 to 3.8 times)", changeOf(&d, true, ""))
}

// What a trial says before its start has the number of blocks that fit into its time.
func TestOutlookSaysHowManyBlocksFit(t *testing.T) {
	s := tried(proof.Running, nil)
	p := proof.Plan{
		A: roundRobin, B: kv, Level: s.Request.Levels[0], Primary: proof.TTFT95, Seconds: 60, MaxTime: 3600,
		Before: 30, Latency: 25,
	}
	assert.Equal(t, "A block takes at least 8 minutes, so that at most 7 fit into 60 minutes. The first look comes after "+
		"block 2, 16 minutes after the start at the earliest.", Outlook(&s.Request, &api.TrialState{FirstLook: 2}, &p)[2])
}

// The sentence of the stage names the arm that fails more turns, where that is the verdict.
func TestHeadlineOfFailures(t *testing.T) {
	s := tried(proof.BFailsMore, new(difference(proof.TTFT95, -.008, -.021, .005, proof.NoDifference)))
	s.Request.Primary = new(string(proof.TTFT95))
	s.Trial.Failures = &api.TrialFailures{
		A: api.TrialFailed{Ended: 900}, B: api.TrialFailed{Failed: 30, Ended: 900}, More: "b", Difference: .0333,
		Interval: &[2]float64{.011, .056},
	}
	h := Headline(&s)
	assert.Equal(t, "KV-aware fails more turns than Round-robin", h.Text)
	assert.Contains(t, h.Detail,
		"3.33 % of turns failed under KV-aware and 0 % under Round-robin (1.1 to 5.6 points more)")
	s.Trial.Verdict = string(proof.Running)
	assert.NotContains(t, Headline(&s).Text, "fails")
}

// The sentence of the stage names a trade-off, and what forbids to call an arm better.
func TestHeadlineOfTradeOff(t *testing.T) {
	s := tried(proof.TradeOff, new(difference(proof.TTFT95, -.194, -.232, -.151, proof.TradeOff)))
	s.Request.Primary = new(string(proof.TTFT95))
	s.Trial.Failures = &api.TrialFailures{
		A: api.TrialFailed{Ended: 900}, B: api.TrialFailed{Failed: 30, Ended: 900}, More: "b",
	}
	h := Headline(&s)
	assert.Equal(t, "A trade-off of KV-aware against round-robin: first token 19.4 % sooner, "+
		"but KV-aware fails more turns",
		h.Text)
	assert.Contains(t, h.Text, h.Difference)
	assert.False(t, h.Certain, "neither arm is better")
	assert.Equal(t, "3.33 % of turns failed under KV-aware and 0 % under Round-robin, certainly more under KV-aware",
		h.Detail[0])
	s.Trial.Failures = nil
	s.Trial.Guards = []api.TrialDifference{{
		Metric: string(proof.AnswerTokens), A: 210, B: 130, Difference: -.381, Interval: &[2]float64{-.412, -.35},
		Outcome: string(proof.Unlike),
	}}
	h = Headline(&s)
	assert.Contains(t, h.Text, "first token 19.4 % sooner, but their answers differ")
	other := s
	other.Trial = &api.TrialState{}
	*other.Trial = *s.Trial
	other.Trial.Guards = nil
	other.Trial.Worse = []api.TrialDifference{difference(proof.Throughput, -.16, -.19, -.13, proof.Running)}
	assert.Contains(t, Headline(&other).Text,
		"first token 19.4 % sooner, but throughput is 16.0 % lower (13.0 to 19.0 %) under KV-aware")
	assert.Equal(t, "answers under KV-aware are 38.1 % shorter (35.0 to 41.2 %) than under Round-robin", h.Detail[0])
}

// A report says where failed turns are in no mean.
func TestMeanOfSuccessfulTurns(t *testing.T) {
	s := looked()
	s.Trial.Primary.Metric = string(proof.MeanTTFT)
	assert.NotContains(t, markdownOf(t, OfSweep(s)), "successful turns only (decides)")
	s.Trial.Succeeded = true
	s.Trial.Failures.Interval = &[2]float64{-.005, .001}
	text := markdownOf(t, OfSweep(s))
	for _, part := range []string{
		"| Mean TTFT, successful turns only (decides) |",
		"failed turns count in all times but the mean TTFT", "The mean TTFT is that of successful turns:",
		"| Failed turns | 0.3 % | 0.1 % | 0.0 points | −0.5 to +0.1 points |",
	} {
		assert.Contains(t, text, part)
	}
}

// How often each mode of a sweep was on either of two lanes is said, level by level.
func TestWordsOfASweepOnTwoLanes(t *testing.T) {
	of := func(spans ...api.SweepSpan) string {
		s := crossed()
		s.Spans = spans
		all := Words(&s)
		return all[len(all)-1]
	}
	both := func(level int, kvOn string) []api.SweepSpan {
		other := map[string]string{api.DefaultLane: api.TwinLane, api.TwinLane: api.DefaultLane}[kvOn]
		return []api.SweepSpan{{Level: api.AtConversations(level), Mode: kv, Lane: kvOn}, {
			Level: api.AtConversations(level), Mode: roundRobin, Lane: other,
		}}
	}
	first := slices.Concat(both(60, api.DefaultLane), both(60, api.TwinLane))
	assert.Equal(t, "Both modes ran at the same time on two targets, swapped in 1 of 2 pairs: other differences "+
		"between the targets cancel out.", of(first...))
	assert.Equal(t, "Both modes ran at the same time on two targets, KV-aware on that of lane twin in 2 of 3 pairs, "+
		"not equally often at every level: other differences between the targets do not cancel out completely.",
		of(append(first, both(120, api.TwinLane)...)...))
	assert.Equal(t, "Both modes ran at the same time on two targets, KV-aware always on the one of lane main: other "+
		"differences between the targets are part of the result.",
		of(slices.Concat(both(60, api.DefaultLane), both(120, api.DefaultLane))...))
	spoiled := both(120, api.TwinLane)
	spoiled[0].Spoiled, spoiled[1].Spoiled = "a", "b"
	assert.Contains(t, of(append(first, spoiled...)...), "in 1 of 2 pairs")
	assert.NotContains(t, of(), "at the same time")
}

// A report has the turns of each worker by mode. A worker that another mode uses, and that this mode could use, has 0.
func TestTurnsByWorker(t *testing.T) {
	s := swept(api.SweepTrial, 120)
	s.Spans = []api.SweepSpan{
		{
			Mode: roundRobin, TurnsByWorker: map[string]int{"a": 10, "b": 10},
			UncachedByWorker: map[string]int{"a": 300, "b": 100},
		},
		{Mode: roundRobin, TurnsByWorker: map[string]int{"a": 9, "b": 11, "c": 5}},
		{Mode: kv, TurnsByWorker: map[string]int{"a": 30}},
		{Mode: kv, TurnsByWorker: map[string]int{"d": 90}, Spoiled: "stopped"},
	}
	text := markdownOf(t, OfSweep(s))
	for _, row := range []string{
		"| Arm | Turns by worker", "| Round-robin | a 19, b 21, c 5 | 1.40 | 2.25 |",
		"| KV-aware | a 30, b 0, c 0 | 3.00 | – |",
	} {
		assert.Contains(t, text, row)
	}
	const doubt = "KV-aware is not what it claims: in 1 of 1 span all turns went to one worker of 3."
	assert.Contains(t, text, doubt, "the other arm shows three workers")
	for i := range s.Spans[:2] {
		delete(s.Spans[i].TurnsByWorker, "a")
	}
	assert.NotContains(t, markdownOf(t, OfSweep(s)), doubt, "the arms may have workers of their own")
	const own = "The arms have no worker in common"
	assert.NotContains(t, markdownOf(t, OfSweep(s)), own, "spans begin on cold caches")
	s.Request.Caches = new(api.TrialCachesWarm)
	assert.Contains(t, markdownOf(t, OfSweep(s)), own)
	s.Spans[2].TurnsByWorker["b"] = 1
	assert.NotContains(t, markdownOf(t, OfSweep(s)), own)
}

// What became of the prompt tokens is the mean over an arm's spans that count.
func TestHitCauses(t *testing.T) {
	spent := func(m api.ModeState, found float64, spoiled string) api.SweepSpan {
		return api.SweepSpan{Mode: m, Spoiled: spoiled, Row: &api.BaselineRow{
			HitCauses: map[api.HitCauseKind]float64{api.CauseFound: found, api.CauseEvicted: 1 - found},
		}}
	}
	s := swept(api.SweepTrial, 120)
	assert.Empty(t, OfSweep(s).hitCauses().Title, "no span has them")
	a, b := roundRobin, kv
	s.Spans = []api.SweepSpan{spent(a, .2, ""), spent(b, .9, ""), spent(a, .4, ""), spent(a, 1, "stopped"), {Mode: b}}
	assert.Equal(t, [][]string{
		{"Round-robin", "30.0 %", "0.0 %", "0.0 %", "0.0 %", "70.0 %", "0.0 %", "0.0 %"},
		{"KV-aware", "90.0 %", "0.0 %", "0.0 %", "0.0 %", "10.0 %", "0.0 %", "0.0 %"},
	}, OfSweep(s).hitCauses().Table.Rows)
}

// The parts of the mean TTFT are means over an arm's spans that count, and add up.
func TestFirstTokens(t *testing.T) {
	spent := func(m api.ModeState, ttft float64, parts *api.FirstTokenParts) api.SweepSpan {
		return api.SweepSpan{Mode: m, Row: &api.BaselineRow{TTFTMean: &ttft, FirstToken: parts}}
	}
	s := swept(api.SweepTrial, 120)
	assert.Empty(t, OfSweep(s).firstTokens().Title, "no span has them")
	all := &api.FirstTokenParts{Engine: .08, Queue: new(.02), Prefill: new(.05)}
	s.Spans = []api.SweepSpan{
		spent(roundRobin, .1, all), spent(roundRobin, .2, all), spent(kv, .1, &api.FirstTokenParts{Engine: .09}),
	}
	assert.Equal(t, [][]string{
		{"Round-robin", "150", "70.0", "20.0", "50.0", "10.0"}, {"KV-aware", "100", "10.0", "–", "–", "90.0"},
	}, OfSweep(s).firstTokens().Table.Rows)
}
