package lane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/chat"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func imported(name string, levels ...int) api.Baseline {
	b := api.Baseline{Name: name, Title: "Mine"}
	for _, concurrency := range append(levels, 10)[:max(1, len(levels))] {
		b.Rows = append(
			b.Rows,
			api.BaselineRow{Level: api.AtConversations(concurrency), Mode: api.ModeKV, Speculation: api.SpeculationOff},
		)
	}
	return b
}

// read returns the next frame.
func read(t testing.TB, frames <-chan []byte) (s api.Snapshot) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(wait.Receive(t, "a frame", frames)))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&s))
	return s
}

// The feed sends one frame at once, one a second, and one after each change.
func TestFeedSendsEachSecondAndOnChange(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		pass(500 * time.Millisecond) // between two ticks
		frames, unsubscribe := b.view.Subscribe()
		synctest.Wait()
		s := read(t, frames)
		assert.True(t, s.Time.Equal(time.Now()))
		assert.Equal(t, b.catalog.Settings(), s.Settings)
		assert.Equal(t, api.VerdictFine, s.Client.Verdict)
		require.Len(t, s.Lanes, 1)
		assert.Equal(t, api.DefaultLane, s.Lanes[0].Name)
		assert.Empty(t, frames)
		pass(time.Second)
		read(t, frames)
		assert.Empty(t, frames)

		settings := func() {
			_, err := b.catalog.PatchSettings(t.Context(), ann, api.SettingsPatch{Title: new("Booth 42")})
			require.NoError(t, err)
		}
		for _, change := range []struct {
			name  string
			make  func()
			check func(api.Snapshot, api.State) bool
		}{
			{"start", func() { b.start(3) }, func(_ api.Snapshot, s api.State) bool { return s.Step.Settled != nil }},
			{"concurrency", func() { b.start(5) }, func(_ api.Snapshot, s api.State) bool {
				return s.Concurrency.Target == api.AtConversations(5)
			}},
			{"settings", settings, func(s api.Snapshot, _ api.State) bool { return s.Settings.Title == "Booth 42" }},
			{"drain", func() { b.drain() }, func(_ api.Snapshot, s api.State) bool { return s.Phase == api.PhaseDraining }},
			{"stop", func() { b.stop() }, func(_ api.Snapshot, s api.State) bool { return s.Phase == api.PhaseStopped }},
			{"mode", func() { b.setMode(roundRobin) }, func(_ api.Snapshot, s api.State) bool {
				return s.ModeChange.Phase == "switching"
			}},
			{"new mode", func() { b.driver.called(t).answer(false, nil) }, func(_ api.Snapshot, s api.State) bool {
				return s.Mode == api.ModeRoundRobin
			}},
		} {
			change.make()
			pass(10 * time.Millisecond) // far from the next tick
			s := read(t, frames)
			assert.True(t, change.check(s, s.Lanes[0].State), change.name)
		}
		unsubscribe()
		unsubscribe()
		pass(3 * time.Second)
		assert.Empty(t, frames)
	})
}

// All readers of a second share one encoding, also with the feed. A change is in the next one that is read.
func TestEncodedOnce(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		for name, get := range map[string]func() ([]byte, error){
			"status": b.view.StatusJSON, "snapshot": b.view.SnapshotJSON,
		} {
			read := func() (text []byte, s api.Snapshot) {
				text, err := get()
				require.NoError(t, err, name)
				require.NoError(t, json.Unmarshal(text, &s), name)
				return text, s
			}
			first, _ := read()
			again, _ := read()
			assert.Same(t, &first[0], &again[0], name)
			for i := range 50 {
				b.patch(api.WorkloadPatch{Level: new(api.AtConversations(i + 2))})
				_, s := read()
				assert.Equal(t, i+2, s.Lanes[0].State.Concurrency.Target.Conversations(), name)
			}
			old, _ := read()
			pass(time.Second)
			now, _ := read()
			assert.NotSame(t, &old[0], &now[0], "%s: a second later", name)
		}
		frames, unsubscribe := b.view.Subscribe()
		defer unsubscribe()
		synctest.Wait()
		frame := <-frames
		text, err := b.view.SnapshotJSON()
		require.NoError(t, err)
		assert.Same(t, &frame[0], &text[0])
	})
}

// A slow reader skips frames and gets the newest one. It does not delay other readers. The end of the process closes
// every feed, also a later one.
func TestSlowReaderGetsTheNewestFrame(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		slow, leave := b.view.Subscribe()
		fast, unsubscribe := b.view.Subscribe()
		for range 10 {
			pass(time.Second)
			read(t, fast)
		}
		assert.WithinDuration(t, time.Now(), read(t, slow).Time, time.Second)
		assert.Empty(t, slow)

		b.start(2)
		b.end()
		leave()
		unsubscribe()
		late, cancel := b.view.Subscribe()
		cancel()
		for _, frames := range []<-chan []byte{slow, fast, late} {
			for range frames { // one frame may be left
			}
		}
	})
}

// A conversation's details end with the turn in progress, whose text grows word by word. The test needs a server,
// because only a real client provides that text.
func TestConversationHasTheTurnInProgress(t *testing.T) {
	next := make(chan string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		word := "."
		for r.Header.Get("X-Request-Id") != "kvbooth-probe" && word != "" {
			_ = http.NewResponseController(w).Flush()
			select {
			case word = <-next:
				fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", word)
			case <-r.Context().Done():
				return
			}
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\".\"}}]}\n\ndata: [DONE]\n\n")
	}))
	defer s.Close()
	client, err := chat.New(chat.Options{
		URL: s.URL, Model: "m",
		Settings: chat.Settings{ConnectTimeout: wait.Limit, FirstTokenTimeout: wait.Limit, StallTimeout: wait.Limit},
	})
	require.NoError(t, err)
	defer client.Close()
	b := newBooth(t, client)
	defer b.end()
	b.start(1)
	detail := func() (c api.Conversation) {
		if all := b.store.allConversations(); len(all) > 0 {
			c, _ = b.view.Conversation(t.Context(), all[0].ID)
		}
		return c
	}
	shows := func(number int, text string) (c api.Conversation) {
		t.Helper()
		wait.Eventually(t, fmt.Sprintf("turn %d: %q", number, text), func() (any, bool) {
			c = detail()
			return c, c.Live != nil && c.Live.Number == number && c.Live.AssistantMessage == text
		})
		return c
	}
	shows(1, "")
	wait.Eventually(t, "a turn that waits", func() (any, bool) {
		window := b.snapshot().Window
		return window, window.Awaiting.N == 1
	})
	next <- "word0 "
	c := shows(1, "word0 ")
	assert.Empty(t, c.Turns)
	assert.NotEmpty(t, c.Live.UserMessage)
	assert.NotContains(t, c.Live.UserMessage, "All there is to know", "the starter is left out")
	assert.Positive(t, *c.Live.TTFT)
	assert.Zero(t, b.snapshot().Window.Awaiting.N)
	next <- "word1 "
	shows(1, "word0 word1 ")
	next <- ""
	c = shows(2, "")
	require.Len(t, c.Turns, 1)
	assert.Equal(t, "word0 word1 .", c.Turns[0].AssistantMessage)
	b.stop()
	assert.Nil(t, detail().Live)
	_, err = b.view.Conversation(t.Context(), "none")
	require.ErrorIs(t, err, api.ErrNotFound)
}

// A setting out of range is refused with its field and changes nothing. Package api tests the ranges of single fields.
func TestSettingsAreChecked(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		was := b.catalog.Settings()
		for _, row := range []struct {
			field string
			patch api.SettingsPatch
		}{
			{"slo.ttft", api.SettingsPatch{SLO: &api.SLO{TPOT: 1}, Title: new("good")}},
			{"slider.max", api.SettingsPatch{MaxConcurrency: new(100)}}, // the slider goes to 200
			{"slider.increment", api.SettingsPatch{Slider: &api.Slider{Min: 1, Max: 10, Increment: 10}}},
			{"default_baseline", api.SettingsPatch{DefaultBaseline: new("none")}},
			{"title", api.SettingsPatch{Title: new("two\nlines")}},
		} {
			got, err := b.catalog.PatchSettings(t.Context(), ann, row.patch)
			refuses(t, err, row.field)
			assert.Equal(t, was, got)
			assert.Equal(t, was, b.catalog.Settings())
		}
		assert.Nil(t, b.store.settings)
		assert.Empty(t, b.store.eventLines())
	})
}

// Settings are stored, take effect at once, and replace the configured ones after a restart. An unknown vendor, which
// another version may have stored, is replaced by the configured one.
func TestSettingsAreKept(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		pass(5 * time.Second)
		assert.Equal(t, 1., *b.snapshot().Window.GoodputRatio)
		_, err := b.catalog.PatchSettings(t.Context(), "admin", api.SettingsPatch{
			SLO: &api.SLO{TTFT: .05, TPOT: .05}, Title: new("Ours"), DefaultBaseline: new(recorded),
			Vendor: new(api.VendorDigitalOcean),
		})
		require.NoError(t, err)
		assert.Zero(t, *b.snapshot().Window.GoodputRatio)
		assert.Equal(t, recorded, b.snapshot().Baseline.Name)
		b.expectEvents("start ann: 2 conversations, KV-aware", "settings admin: settings changed")
		b.end()
		again := newBooth(t, newFake(), func(o *options) { o.store = b.store })
		settings := b.catalog.Settings()
		assert.Equal(t, "Ours", settings.Title)
		assert.Equal(t, settings, again.catalog.Settings())
		for _, vendor := range []api.Vendor{"", "acme"} {
			again.end()
			settings.Vendor = vendor
			require.NoError(t, b.store.SaveSettings(t.Context(), settings))
			again = newBooth(t, newFake(), func(o *options) { o.store = b.store })
			assert.Equal(t, api.VendorNeutral, again.catalog.Settings().Vendor)
			_, err := again.catalog.PatchSettings(t.Context(), ann, api.SettingsPatch{Title: new("New")})
			require.NoError(t, err)
		}
	})
}

// The number of stored baselines and of their rows is limited. At the limit, a stored baseline can be replaced.
func TestStoredBaselinesAreLimited(t *testing.T) {
	c := newBooth(t, newFake()).catalog
	ctx := t.Context()
	for i := range api.MaxBaselines {
		_, err := c.SaveBaseline(ctx, ann, imported(fmt.Sprint("mine ", i)))
		require.NoError(t, err)
	}
	_, err := c.SaveBaseline(ctx, ann, imported("one more"))
	refuses(t, err, "name")
	_, err = c.CheckBaseline(imported("one more"))
	refuses(t, err, "name")
	_, err = c.SaveMeasured(ctx, ann, imported("one more"))
	refuses(t, err, "name")
	_, err = c.SaveBaseline(ctx, ann, imported("mine 1", 20))
	require.NoError(t, err)

	levels := make([]int, 10_000)
	for i := range levels {
		levels[i] = i + 1
	}
	for i := range 4 {
		_, err := c.SaveBaseline(ctx, ann, imported(fmt.Sprint("mine ", i), levels...))
		require.NoError(t, err)
	}
	_, err = c.MergeBaseline(ctx, ann, imported("mine 4", levels...), false)
	refuses(t, err, "rows")
	assert.ErrorContains(t, err, "at most 9905")
	_, err = c.MergeBaseline(ctx, ann, imported("mine 4", levels[:9905]...), false)
	require.NoError(t, err)
}

// Imports of one name replace each other or are merged. They are stored, and can be deleted unless they are the
// default. Names of the product's own baselines are refused everywhere. A check stores nothing.
func TestImportedBaselinesAreReplacedMergedAndDeleted(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		ctx, c := t.Context(), b.catalog
		levels := func(c *Catalog) (all []int) {
			found, err := c.Baseline("mine")
			require.NoError(t, err)
			assert.Equal(t, baseline.KindImported, found.Kind)
			for _, r := range found.Rows {
				all = append(all, r.Level.Conversations())
			}
			return all
		}
		_, err := c.SaveBaseline(ctx, ann, api.Baseline{Name: "empty"})
		refuses(t, err, "rows")
		for _, name := range []string{recorded, api.ThisTarget} {
			_, save := c.SaveBaseline(ctx, ann, imported(name))
			_, check := c.CheckBaseline(imported(name))
			_, merge := c.MergeBaseline(ctx, ann, imported(name), true)
			for _, err := range []error{save, check, merge} {
				require.ErrorIs(t, err, api.ErrConflict)
			}
		}
		require.ErrorIs(t, c.DeleteBaseline(ctx, ann, recorded), api.ErrConflict)
		require.ErrorIs(t, c.DeleteBaseline(ctx, ann, "mine"), api.ErrNotFound)
		checked, err := c.CheckBaseline(imported("mine"))
		require.NoError(t, err)
		assert.Equal(t, baseline.KindImported, checked.Kind)
		_, err = c.Baseline("mine")
		require.ErrorIs(t, err, api.ErrNotFound)

		for _, level := range []int{2, 8} {
			_, err := c.SaveBaseline(ctx, ann, imported("mine", level))
			require.NoError(t, err)
		}
		assert.Equal(t, []int{8}, levels(c))
		for _, level := range []int{4, 8} {
			_, err := c.MergeBaseline(ctx, ann, imported("mine", level), false)
			require.NoError(t, err)
		}
		checked, err = c.MergeBaseline(ctx, ann, imported("mine", 16), true)
		require.NoError(t, err)
		assert.Len(t, checked.Rows, 3)
		assert.Equal(t, []int{4, 8}, levels(c))
		assert.Len(t, c.Baselines(), len(baseline.Builtin())+1)
		b.expectEvents("baseline ann: imported baseline mine", "baseline ann: imported baseline mine",
			"baseline ann: imported rows into baseline mine", "baseline ann: imported rows into baseline mine")

		b.end()
		c = newBooth(t, newFake(), func(o *options) { o.store = b.store }).catalog
		assert.Equal(t, []int{4, 8}, levels(c))
		_, err = c.PatchSettings(ctx, ann, api.SettingsPatch{DefaultBaseline: new("mine")})
		require.NoError(t, err)
		require.ErrorIs(t, c.DeleteBaseline(ctx, ann, "mine"), api.ErrConflict)
		_, err = c.PatchSettings(ctx, ann, api.SettingsPatch{DefaultBaseline: new("")})
		require.NoError(t, err)
		require.NoError(t, c.DeleteBaseline(ctx, ann, "mine"))
		_, err = c.Baseline("mine")
		require.ErrorIs(t, err, api.ErrNotFound)
		assert.Empty(t, b.store.baselines)
	})
}

// The status has the version, the configuration, and the address in use beside that of the target.
func TestStatusHasTheAddressInUse(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		s := b.view.Status()
		assert.Equal(t, "1.2.3", s.Version)
		assert.Equal(t, "x", s.Config["target.url"])
		assert.Positive(t, s.UptimeSeconds)
		l := s.Lanes[0]
		assert.Equal(t, "test-model", l.Target.Deployment.Model)
		assert.Equal(t, "http://gpu.example:8000", l.Target.URL)
		assert.Equal(t, "http://rr.example:8000", l.Target.Endpoint)
		assert.EqualValues(t, map[string]bool{"nvext": true}, l.Extensions)
		assert.EqualValues(t, 7, l.Seed)
		assert.Equal(t, []string{"smg", "nvext.worker_id", "usage"},
			[]string{l.Target.Router, l.Target.WorkerSource, l.Target.CachedSource})
		assert.EqualValues(t, []string{"target.session is set."}, l.Target.Notices)
		_, err := b.view.Lane("twin")
		require.ErrorIs(t, err, api.ErrNotFound)
	}, func(o *options) {
		o.config = map[string]string{"target.url": "x"}
		f := o.Client.(*fake)
		f.extensions, f.router = map[string]bool{"nvext": true}, "smg"
		f.remarks = []string{"target.session is set."}
		o.Client = redirected{f}
	})
}

// redirected is a client that uses another address than the target's.
type redirected struct{ *fake }

func (redirected) Endpoint() string { return "http://rr.example:8000" }

func (redirected) InUse() string { return "rr" }

// Many clients make all kinds of calls while modes change and the process ends. A deadlock would end the test at its
// time limit.
func TestConcurrentCalls(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		done := make(chan struct{})
		go b.answerSwitches(done)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				for range 400 {
					b.callAtRandom(r)
				}
			})
		}
		wg.Wait()
		b.stop()
		wg.Go(func() { b.callAtRandom(rand.New(rand.NewPCG(2, 2))) })
		wg.Go(b.end)
		wg.Wait()
		close(done)
		assert.Zero(t, b.lane.State().Concurrency.Actual)
	})
}

// answerSwitches answers every switch, some with a failure, until done is closed.
func (b *booth) answerSwitches(done <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case call := <-b.driver.calls:
			var err error
			if n%3 == 0 {
				err = errDriver
			}
			call.report("switching", "on the way")
			call.answer(n%2 == 0, err)
		case <-done:
			return
		}
	}
}

// callAtRandom makes one random call. Its result is ignored: most calls conflict with each other.
func (b *booth) callAtRandom(r *rand.Rand) {
	ctx, n := b.t.Context(), 1+r.IntN(12)
	mode := api.ModeRequest{Mode: []api.Mode{api.ModeKV, api.ModeRoundRobin}[r.IntN(2)], Confirm: n == 1}
	patches := []api.WorkloadPatch{
		{Level: new(api.AtConversations(n))},
		{MaxTokens: &n},
		{StartRate: new(float64(100 * n))},
	}
	slo := api.SettingsPatch{SLO: &api.SLO{TTFT: float64(n), TPOT: 1}}
	actions := []func(){
		func() { _, _ = b.lane.Start(ctx, ann, api.StartRequest{Level: new(api.AtConversations(n))}) },
		func() { _, _ = b.lane.Start(ctx, ann, api.StartRequest{}) },
		func() { _, _ = b.lane.Stop(ctx, ann, api.StopRequest{Drain: n%2 == 0}) },
		func() { _, _ = b.lane.Patch(ctx, ann, patches[n%3]) },
		func() { _, _ = b.lane.SetMode(ctx, ann, mode) },
		func() { _, _ = b.lane.CancelMode(ctx, ann) },
		func() { _, _ = b.catalog.PatchSettings(ctx, ann, slo) },
		func() { _, _ = b.catalog.SaveBaseline(ctx, ann, imported(fmt.Sprintf("mine %d", n))) },
		func() { b.view.Snapshot() },
		func() { b.view.Status() },
		func() { _ = b.view.Ready() },
		func() { b.lane.read(time.Now()).gauges() },
		func() { b.lane.tick(time.Now()) },
		func() {
			if all := b.store.allConversations(); len(all) > 0 {
				_, _ = b.view.Conversation(ctx, all[0].ID)
			}
		},
		func() {
			frames, unsubscribe := b.view.Subscribe()
			<-frames
			unsubscribe()
		},
	}
	actions[r.IntN(len(actions))]()
}
