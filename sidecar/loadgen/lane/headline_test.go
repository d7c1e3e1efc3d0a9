package lane

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/stats"
)

// The headline says what is waited for, what is seen, what is certain, and that a certain difference has shrunk. A mode
// is compared with the other one as measured here.
func TestHeadlineFollowsASwitch(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		headline := func() api.Headline {
			t.Helper()
			h := b.snapshot().Baseline.Headline
			require.NotNil(t, h)
			return *h
		}
		assert.Equal(t, "The workload is stopped", headline().Text)
		b.start(3)
		pass(20 * time.Second)
		assert.Regexp(t, `^Settling, 4[0-3] s to go$`, headline().Text)
		assert.Equal(t, api.HeadlineWaiting, headline().Kind)
		pass(3 * time.Minute)
		assert.Equal(t, "Nothing to compare with yet at 3 conversations", headline().Text)

		before := b.lane.read(time.Now())
		comparison := before.compare(before.defaultBaseline())
		b.setMode(roundRobin)
		f.set(func(f *fake) { f.ttft = 600 * time.Millisecond })
		b.driver.called(t).answer(false, nil)
		pass(10 * time.Second)
		assert.Equal(t, "Settling: a new step has just begun", before.headline(&comparison).Text,
			"what was read before the switch says nothing of the new mode")
		assert.Regexp(t, `^Settling, (49|50|51) s to go$`, headline().Text)
		assert.Regexp(t, `^to be compared with KV-aware, measured here at 00:03$`, headline().Detail[0])
		pass(55 * time.Second)
		h := headline()
		assert.Equal(t, "Round-robin: the first token takes 3.0 times as long as under KV-aware, measured here at 00:03",
			h.Text)
		assert.Equal(t, "3.0 times as long", h.Difference)
		assert.Equal(t, api.HeadlineWorse, h.Kind)
		assert.True(t, h.Certain)
		assert.Equal(t, api.AgainstMeasured, h.Against)
		assert.Contains(t, h.Detail, "mean TTFT 600 ms beside 200 ms")
		since := *h.Since
		require.Len(t, h.Lines, 1)
		assert.InDelta(t, -200, *h.Lines[0].Percent, 1)
		assert.Regexp(t, `^against KV-aware, measured here at 00:03: mean 3.0 times as long `, h.Lines[0].Text)

		pass(2 * time.Minute)
		f.set(func(f *fake) { f.ttft = 200 * time.Millisecond })
		pass(4 * time.Minute)
		h = headline()
		assert.Regexp(t, `^Round-robin: the first token takes [0-9.]+ times as long as under KV-aware, `+
			`measured here at 00:03, certain at 00:04; now [0-9.]+ % later, not certain$`, h.Text)
		assert.Equal(t, api.HeadlineUncertain, h.Kind)
		assert.False(t, h.Certain)
		assert.Equal(t, since, *h.Since, "since it was certain first")

		pass(80 * time.Second)
		assert.Contains(t, b.store.eventLines(), "step load generator: step 3: measured anew, since the first token of the "+
			"last 5 minutes came 66.1 % sooner than before in the step")
		assert.Regexp(t, `certain at 00:04; measured anew, [0-9]+ s to go$`, headline().Text)
		assert.Equal(t, since, *headline().Since, "it is the same setting")
		f.set(func(f *fake) { f.ttft = 20 * time.Millisecond })
		b.noError(b.lane.MeasureAnew(t.Context(), ann, api.MeasureRequest{}))
		pass(5 * time.Second)
		assert.Regexp(t, `^Settling, 2[4-6] s to go$`, headline().Text, "nothing precedes the turns that count")
		pass(30 * time.Second)
		assert.Regexp(t, `^Round-robin: first token [0-9.]+ % sooner than KV-aware, measured here at 00:03$`, headline().Text)
		b.stop()
		assert.ErrorIs(t, errorOf(b.lane.MeasureAnew(t.Context(), ann, api.MeasureRequest{})), api.ErrConflict)
	}, func(o *options) { o.Driver = warmScript{o.Driver.(*script)} })
}

func TestResultOfAnInterval(t *testing.T) {
	for _, test := range []struct {
		name               string
		d, half            float64
		own, reference     float64
		kind               api.HeadlineKind
		withheld, interval bool
	}{
		{"certainly sooner", -.3, .1, 0, 0, api.HeadlineBetter, false, true},
		{"certainly later", .3, .1, 0, 0, api.HeadlineWorse, false, true},
		{"not certain", -.1, .2, 0, 0, api.HeadlineUncertain, false, true},
		{"no difference", .01, .03, 0, 0, api.HeadlineSame, false, true},
		{"no interval", -.3, math.Inf(1), 0, 0, api.HeadlineUncertain, false, false},
		{"own error too large", .12, .1, .05, 0, api.HeadlineUncertain, true, true},
		{"error of the reference too large", -.12, .1, 0, .05, api.HeadlineUncertain, true, true},
		{"own error makes TTFT only longer", -.12, .1, .05, 0, api.HeadlineBetter, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var l line
			l.Kind = api.HeadlineUncertain
			l.settle(test.d, test.half, test.own, test.reference)
			assert.Equal(t, test.kind, l.Kind)
			assert.Equal(t, test.withheld, l.doubt != "")
			assert.Equal(t, test.interval, l.Interval != nil)
		})
	}
}

// What was certain first stays the headline; a countdown is shown once its estimate is stable, and never grows.
func TestHeadlinesKeepTheirReference(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var h headlines
	one := func(against api.HeadlineReference, kind api.HeadlineKind, percent float64, left time.Duration) line {
		l := line{HeadlineLine: api.HeadlineLine{Against: against, Kind: kind, Percent: &percent}}
		if left > 0 {
			l.left = &left
		}
		return l
	}
	about := setting{level: api.AtConversations(60)}
	uncertain := func(left time.Duration) []line {
		return []line{
			one(api.AgainstMeasured, api.HeadlineUncertain, 20, left),
			one(api.AgainstRecorded, api.HeadlineUncertain, 50, 0),
		}
	}
	var shown []float64
	for second := range 60 {
		left := time.Duration(100-second) * time.Second
		if second >= 40 {
			left += 50 * time.Second
		}
		l, was, in := h.judge(now.Add(time.Duration(second)*time.Second), about, uncertain(left))
		assert.Equal(t, api.AgainstMeasured, l.Against)
		assert.Zero(t, was.since)
		if in != nil {
			shown = append(shown, in.Seconds())
		}
	}
	require.Len(t, shown, 20, "from 20 s on, until the estimate moves away")
	assert.Equal(t, 80., shown[0])
	assert.IsDecreasing(t, shown)

	both := uncertain(0)
	both[1].Kind = api.HeadlineBetter
	l, _, _ := h.judge(now.Add(time.Minute), about, both)
	assert.Equal(t, api.AgainstRecorded, l.Against)
	both[0].Kind = api.HeadlineBetter
	l, was, _ := h.judge(now.Add(2*time.Minute), about, both)
	assert.Equal(t, api.AgainstRecorded, l.Against, "that which was certain first")
	assert.Equal(t, now.Add(time.Minute), was.since)
	l, was, _ = h.judge(now.Add(3*time.Minute), about, uncertain(0))
	assert.Equal(t, api.AgainstRecorded, l.Against)
	assert.Equal(t, now.Add(time.Minute), was.since, "it is remembered")
	l, was, _ = h.judge(now.Add(4*time.Minute), setting{level: api.AtConversations(80)}, uncertain(0))
	assert.Equal(t, api.AgainstMeasured, l.Against)
	assert.Zero(t, was.since, "not under another level")
}

// The recording decides by TTFT p95 or p50, unless one is better and the other worse.
func TestRecordedFiguresThatPointApart(t *testing.T) {
	for _, test := range []struct {
		p95, p50 float64
		apart    bool
	}{{20, 5, false}, {-20, -5, false}, {20, -5, true}, {0, -5, false}} {
		assert.Equal(t, test.apart, pointApart(
			&line{HeadlineLine: api.HeadlineLine{Percent: &test.p95}},
			&line{HeadlineLine: api.HeadlineLine{Percent: &test.p50}}))
	}
	assert.False(t, pointApart(&line{}, &line{}))
}

func TestWordsOfDifferences(t *testing.T) {
	for percent, want := range map[float64]string{
		22.4: "22.4 % sooner", 8.64: "8.6 % sooner", -9.96: "10.0 % later", -100: "100.0 % later", -230: "3.3 times as long",
		.04: "0.0 %",
	} {
		assert.Equal(t, want, DifferenceText(percent))
	}
	for in, want := range map[[2]float64]string{
		{12, 38}: "12.0 to 38.0 % sooner", {-4, 7}: "4.0 % later to 7.0 % sooner", {-40, -12}: "12.0 to 40.0 % later",
		{-250, -40}: "3.5 times as long to 40.0 % later", {-250, -120}: "3.5 times as long to 2.2 times as long",
		{-4, 100.3}: "4.0 % later to 100.0 % sooner",
	} {
		assert.Equal(t, want, IntervalText(in))
	}
	assert.Equal(t, "12,345 ms", api.Milliseconds(12.345))
}

// The estimated time until a difference is certain is that of the first batch after which it would be.
func TestTimeUntilCertain(t *testing.T) {
	is := decide.Mean{N: 1, Batch: decide.Variance{Value: .01, DF: 20}}
	was := decide.Mean{N: 10, Batch: decide.Variance{Value: .01, DF: 20}}
	left := untilCertain(-.25, is, was, 30*time.Second, 10*time.Second)
	require.NotNil(t, left)
	for more := 1; ; more++ {
		is.N, is.Batch.DF = float64(1+more), float64(20+more)
		if stats.Contrast(is, was) < .25 {
			assert.Equal(t, time.Duration(more)*30*time.Second-10*time.Second, *left)
			break
		}
	}
	assert.Nil(t, untilCertain(-.01, is, was, 30*time.Second, 0), "never within an hour")
}
