package lane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/chat"
)

func imported(name string) api.Baseline {
	return api.Baseline{Name: name, Title: "Mine", Rows: []api.BaselineRow{{Concurrency: 10, Mode: api.ModeKV, Speculation: api.SpeculationOff, N: 5}}}
}

// read gives the next frame.
func read(t testing.TB, frames <-chan []byte) (s api.Snapshot) {
	t.Helper()
	select {
	case frame, open := <-frames:
		require.True(t, open, "the feed is closed")
		d := json.NewDecoder(bytes.NewReader(frame))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&s))
	case <-time.After(limit):
		t.Fatal("no frame")
	}
	return s
}

// none wants no frame now; everything that is due has happened.
func none(t testing.TB, frames <-chan []byte) {
	t.Helper()
	select {
	case <-frames:
		t.Error("a frame that nothing called for")
	default:
	}
}

// One frame comes at once, one a second, and one at once on each change.
func TestSubscribe(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		pass(500 * time.Millisecond) // between two ticks
		frames, unsubscribe := b.view.Subscribe()
		synctest.Wait()
		s := read(t, frames)
		assert.True(t, s.Time.Equal(time.Now()))
		assert.Equal(t, b.catalogue.Settings(), s.Settings)
		assert.Equal(t, api.VerdictFine, s.Client.Verdict)
		require.Len(t, s.Lanes, 1)
		assert.Equal(t, api.DefaultLane, s.Lanes[0].Name)
		none(t, frames)
		pass(time.Second)
		read(t, frames)
		none(t, frames)

		settings := func() {
			_, err := b.catalogue.PatchSettings(t.Context(), ann, api.SettingsPatch{Title: new("Booth 42")})
			require.NoError(t, err)
		}
		for _, change := range []struct {
			name  string
			make  func()
			check func(api.Snapshot) bool
		}{
			{"start", func() { b.start(3) }, func(s api.Snapshot) bool { return s.Lanes[0].State.Running && s.Lanes[0].State.Step.Settled != nil }},
			{"concurrency", func() { b.start(5) }, func(s api.Snapshot) bool { return s.Lanes[0].State.Concurrency.Target == 5 }},
			{"settings", settings, func(s api.Snapshot) bool { return s.Settings.Title == "Booth 42" }},
			{"drain", func() { b.drain() }, func(s api.Snapshot) bool { return s.Lanes[0].State.Phase == api.PhaseDraining }},
			{"stop", func() { b.stop() }, func(s api.Snapshot) bool { return s.Lanes[0].State.Phase == api.PhaseStopped }},
			{"mode", func() { b.setMode(roundRobin) }, func(s api.Snapshot) bool { return s.Lanes[0].State.ModeChange.Phase == "switching" }},
			{"new mode", func() { b.driver.called(t).answer(false, nil) }, func(s api.Snapshot) bool { return s.Lanes[0].State.Mode == api.ModeRoundRobin }},
		} {
			change.make()
			pass(10 * time.Millisecond) // far from the next tick
			assert.True(t, change.check(read(t, frames)), change.name)
		}
		unsubscribe()
		unsubscribe()
		pass(3 * time.Second)
		none(t, frames)
	})
}

// All readers of a second get one encoding, which the feed shares. What an operator
// has changed is in the next one that is read.
func TestEncodedOnce(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		for name, get := range map[string]func() ([]byte, error){"status": b.view.StatusJSON, "snapshot": b.view.SnapshotJSON} {
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
				b.patch(api.WorkloadPatch{Concurrency: new(i + 2)})
				_, s := read()
				assert.Equal(t, i+2, s.Lanes[0].State.Concurrency.Target, name)
				title := fmt.Sprint("Booth ", i)
				_, err := b.catalogue.PatchSettings(t.Context(), ann, api.SettingsPatch{Title: &title})
				require.NoError(t, err, name)
				_, s = read()
				assert.Equal(t, title, s.Settings.Title, name)
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

// BenchmarkStatus is what a call for the status costs beyond HTTP: made for each
// reader, and shared.
func BenchmarkStatus(b *testing.B) {
	booth := newBooth(b, newFake())
	booth.start(180)
	require.Eventually(b, func() bool { return booth.lane.underway(time.Now()).Turns == 180 }, limit, time.Millisecond)
	for name, get := range map[string]func() ([]byte, error){
		"each":            func() ([]byte, error) { return json.Marshal(booth.view.Status()) },
		"shared":          booth.view.StatusJSON,
		"snapshot each":   func() ([]byte, error) { return json.Marshal(booth.view.Snapshot()) },
		"snapshot shared": booth.view.SnapshotJSON,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := get()
				require.NoError(b, err)
			}
		})
	}
}

// A slow reader loses what lies between and gets the newest; the others are not
// held up.
func TestSlowReader(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		slow, leave := b.view.Subscribe()
		defer leave()
		fast, unsubscribe := b.view.Subscribe()
		defer unsubscribe()
		for range 10 {
			pass(time.Second)
			read(t, fast)
		}
		assert.WithinDuration(t, time.Now(), read(t, slow).Time, time.Second)
		none(t, slow)
	})
}

// The end of the hub closes every feed, those that come late among them.
func TestFeedEnds(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		frames, unsubscribe := b.view.Subscribe()
		b.start(2)
		b.end()
		closed := func(frames <-chan []byte) {
			for range 2 { // one frame may be left
				if _, open := <-frames; !open {
					return
				}
			}
			t.Error("the feed is not closed")
		}
		closed(frames)
		unsubscribe()
		late, unsubscribe := b.view.Subscribe()
		closed(late)
		unsubscribe()
	})
}

// nulls are the paths of null values in a JSON document.
func nulls(path string, v any) (found []string) {
	switch v := v.(type) {
	case nil:
		return []string{path}
	case map[string]any:
		for k, member := range v {
			found = append(found, nulls(path+"."+k, member)...)
		}
	case []any:
		for i, member := range v {
			found = append(found, nulls(fmt.Sprintf("%s[%d]", path, i), member)...)
		}
	}
	return found
}

// What is empty is an empty list or object in JSON, and never null: before
// anything ran, while it runs, and when it has stopped.
func TestNoNulls(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		check := func(when string) {
			for what, v := range map[string]any{"snapshot": b.view.Snapshot(), "status": b.view.Status()} {
				data, err := json.Marshal(v)
				require.NoError(t, err)
				var document any
				require.NoError(t, json.Unmarshal(data, &document))
				assert.Empty(t, nulls(what, document), when)
			}
		}
		check("at first")
		data, err := json.Marshal(b.snapshot())
		require.NoError(t, err)
		for _, list := range []string{`"ttft_by_turn":[]`, `"workers":[]`, `"modes":[]`, `"differences":[]`, `"columns":[]`, `"errors":{}`, `"errors_by_class":{}`} {
			assert.Contains(t, string(data), list)
		}
		b.start(3)
		pass(10 * time.Second)
		check("running")
		assert.NotEmpty(t, b.snapshot().TTFTByTurn)
		b.stop()
		check("stopped")
	}, func(o *options) {
		o.config = map[string]string{}
		o.Driver.(*script).offers = nil
	})
}

// The detail of a conversation ends with the turn under way, whose text grows
// word by word until the turn is one of the ended ones. Here a client talks to a
// server: it is what fills the text.
func TestLiveTurn(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for probe := r.Header.Get("X-Request-Id") == "kvbooth-probe"; ; {
			word := ""
			if !probe {
				_ = http.NewResponseController(w).Flush()
				select {
				case word = <-next:
				case <-r.Context().Done():
					return
				}
			}
			if word == "" {
				fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\".\"}}]}\n\ndata: [DONE]\n\n")
				return
			}
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", word)
		}
	}))
	defer s.Close()
	client, err := chat.New(chat.Options{URL: s.URL, Model: "m", ConnectTimeout: limit, FirstTokenTimeout: limit, StallTimeout: limit})
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
	until := func(what string, holds func() bool) {
		t.Helper()
		require.Eventually(t, holds, limit, time.Millisecond, what)
	}
	until("a turn that waits", func() bool { return b.snapshot().Window.Awaiting.N == 1 })
	next <- "word0 "
	until("its first word", func() bool { c := detail(); return c.Live != nil && c.Live.AssistantMessage == "word0 " })
	c := detail()
	assert.Empty(t, c.Turns)
	assert.Equal(t, 1, c.Live.Number)
	assert.NotEmpty(t, c.Live.UserMessage)
	assert.NotContains(t, c.Live.UserMessage, "All there is to know", "the starter is left out")
	assert.Positive(t, *c.Live.TTFT)
	assert.Zero(t, b.snapshot().Window.Awaiting.N)
	next <- "word1 "
	until("its second word", func() bool { return detail().Live.AssistantMessage == "word0 word1 " })
	next <- ""
	until("the next turn", func() bool { c := detail(); return c.Live != nil && c.Live.Number == 2 && len(c.Turns) == 1 })
	assert.Equal(t, "word0 word1 .", detail().Turns[0].AssistantMessage)
	b.stop()
	assert.Nil(t, detail().Live)
	_, err = b.view.Conversation(t.Context(), "none")
	require.ErrorIs(t, err, api.ErrNotFound)
}

// A setting out of range is refused by field, and changes nothing.
func TestSettingsOutOfRange(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		was := b.catalogue.Settings()
		for _, row := range []struct {
			field string
			patch api.SettingsPatch
		}{
			{"slo.ttft", api.SettingsPatch{SLO: &api.SLO{TPOT: 1}}},
			{"slo.tpot", api.SettingsPatch{SLO: &api.SLO{TTFT: 1, TPOT: 3601}}},
			{"max_concurrency", api.SettingsPatch{MaxConcurrency: new(0)}},
			{"max_concurrency", api.SettingsPatch{MaxConcurrency: new(100_001)}},
			{"slider.max", api.SettingsPatch{MaxConcurrency: new(100)}}, // the slider goes to 200
			{"slider.min", api.SettingsPatch{Slider: &api.Slider{Min: 0, Max: 10, Increment: 1}}},
			{"slider.min", api.SettingsPatch{Slider: &api.Slider{Min: 10, Max: 10, Increment: 1}}},
			{"slider.increment", api.SettingsPatch{Slider: &api.Slider{Min: 1, Max: 10, Increment: 10}}},
			{"default_baseline", api.SettingsPatch{DefaultBaseline: new("nobody's")}},
			{"title", api.SettingsPatch{Title: new("two\nlines")}},
			{"vendor", api.SettingsPatch{Vendor: new(api.Vendor("acme"))}},
			{"subtitle", api.SettingsPatch{Subtitle: new(strings.Repeat("é", 201)), Title: new("good")}},
		} {
			got, err := b.catalogue.PatchSettings(t.Context(), ann, row.patch)
			_ = refuses(t, err, row.field)
			assert.Equal(t, was, got)
			assert.Equal(t, was, b.catalogue.Settings())
		}
		assert.Nil(t, b.store.settings)
		assert.Empty(t, b.store.told())
	})
}

// Settings are stored, judge at once, and go before the configuration after a
// restart.
func TestSettings(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		pass(5 * time.Second)
		assert.Equal(t, 1., *b.snapshot().Window.GoodputRatio)
		_, err := b.catalogue.PatchSettings(t.Context(), "admin", api.SettingsPatch{
			SLO: &api.SLO{TTFT: .05, TPOT: .05}, Title: new("Ours"), DefaultBaseline: new("h200x3-tp1-llama70b-fp8"), Vendor: new(api.VendorDigitalOcean),
		})
		require.NoError(t, err)
		assert.Zero(t, *b.snapshot().Window.GoodputRatio)
		assert.Equal(t, "h200x3-tp1-llama70b-fp8", b.snapshot().Baseline.Name)
		assert.Equal(t, []string{"start ann: 2 conversations, KV-aware", "settings admin: settings changed"}, b.store.told())
		b.end()
		again := newBooth(t, newFake(), func(o *options) { o.store = b.store })
		assert.Equal(t, b.catalogue.Settings(), again.catalogue.Settings())
		assert.Equal(t, "Ours", again.catalogue.Settings().Title)
		assert.Equal(t, api.VendorDigitalOcean, again.catalogue.Settings().Vendor)
	})
}

// Settings that a version without vendors has kept, or one with others, have the
// configured vendor, and can be changed.
func TestSettingsOfAnotherVersion(t *testing.T) {
	for name, kept := range map[string]api.Vendor{"none": "", "unknown": "acme"} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, b *booth, _ *fake) {
				settings := b.catalogue.Settings()
				settings.Title, settings.Vendor = "Ours", kept
				require.NoError(t, b.store.SaveSettings(t.Context(), settings))
				b.end()
				again := newBooth(t, newFake(), func(o *options) { o.store = b.store; o.configured.Vendor = api.VendorDigitalOcean })
				assert.Equal(t, api.VendorDigitalOcean, again.catalogue.Settings().Vendor)
				assert.Equal(t, "Ours", again.catalogue.Settings().Title)
				_, err := again.catalogue.PatchSettings(t.Context(), ann, api.SettingsPatch{Title: new("New")})
				require.NoError(t, err)
			})
		})
	}
}

// Imports take no name that is the product's own, and replace each other.
func TestBaselines(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		ctx := t.Context()
		for _, name := range []string{"h200x3-tp1-llama70b-fp8", api.ThisTarget} {
			_, err := b.catalogue.SaveBaseline(ctx, ann, imported(name))
			require.ErrorIs(t, err, api.ErrConflict)
		}
		_, err := b.catalogue.SaveBaseline(ctx, ann, api.Baseline{Name: "empty"})
		_ = refuses(t, err, "rows")
		for _, title := range []string{"First", "Second"} {
			mine := imported("mine")
			mine.Title = title
			saved, err := b.catalogue.SaveBaseline(ctx, ann, mine)
			require.NoError(t, err)
			assert.Equal(t, baseline.KindImported, saved.Kind)
			found, err := b.catalogue.Baseline("mine")
			require.NoError(t, err)
			assert.Equal(t, title, found.Title)
		}
		assert.Len(t, b.catalogue.Baselines(), len(baseline.Builtin())+1)
		checked, err := b.catalogue.CheckBaseline(imported("not yet"))
		require.NoError(t, err)
		assert.Equal(t, baseline.KindImported, checked.Kind)
		_, err = b.catalogue.CheckBaseline(imported(api.ThisTarget))
		require.ErrorIs(t, err, api.ErrConflict)
		assert.Len(t, b.catalogue.Baselines(), len(baseline.Builtin())+1, "a check stores nothing")
		_, err = b.catalogue.Baseline("yours")
		require.ErrorIs(t, err, api.ErrNotFound)
		b.events("baseline ann: imported baseline mine", "baseline ann: imported baseline mine")
		b.end()
		again := newBooth(t, newFake(), func(o *options) { o.store = b.store })
		_, err = again.catalogue.Baseline("mine")
		require.NoError(t, err)
	})
}

// Rows of several imports add up under one name; a baseline that was not imported takes
// none, and a dry run stores nothing.
func TestMergeBaseline(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		ctx := t.Context()
		of := func(name string, concurrency int) api.Baseline {
			one := imported(name)
			one.Rows = []api.BaselineRow{{Concurrency: concurrency, Mode: api.ModeKV, Speculation: api.SpeculationOff}}
			return one
		}
		levels := func() (all []int) {
			found, err := b.catalogue.Baseline("mine")
			require.NoError(t, err)
			for _, r := range found.Rows {
				all = append(all, r.Concurrency)
			}
			return all
		}
		for _, concurrency := range []int{8, 4, 8} {
			_, err := b.catalogue.MergeBaseline(ctx, ann, of("mine", concurrency), false)
			require.NoError(t, err)
		}
		assert.Equal(t, []int{4, 8}, levels())
		checked, err := b.catalogue.MergeBaseline(ctx, ann, of("mine", 16), true)
		require.NoError(t, err)
		assert.Len(t, checked.Rows, 3)
		assert.Equal(t, []int{4, 8}, levels())
		other := of("mine", 16)
		other.Deployment.Model = "another"
		mine := of("mine", 4)
		mine.Deployment.Model = "one"
		_, err = b.catalogue.SaveBaseline(ctx, ann, mine)
		require.NoError(t, err)
		_, err = b.catalogue.MergeBaseline(ctx, ann, other, false)
		_ = refuses(t, err, "deployment.model")
		for _, name := range []string{"h200x3-tp1-llama70b-fp8", api.ThisTarget} {
			_, err = b.catalogue.MergeBaseline(ctx, ann, of(name, 4), true)
			require.ErrorIs(t, err, api.ErrConflict)
		}
		b.events("baseline ann: imported rows into baseline mine", "baseline ann: imported rows into baseline mine",
			"baseline ann: imported rows into baseline mine", "baseline ann: imported baseline mine")
	})
}

// What was imported can be deleted, unless it is the default; nothing else can.
func TestDeleteBaseline(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		ctx := t.Context()
		require.ErrorIs(t, b.catalogue.DeleteBaseline(ctx, ann, "mine"), api.ErrNotFound)
		require.ErrorIs(t, b.catalogue.DeleteBaseline(ctx, ann, "h200x3-tp1-llama70b-fp8"), api.ErrConflict)
		_, err := b.catalogue.SaveBaseline(ctx, ann, imported("mine"))
		require.NoError(t, err)
		_, err = b.catalogue.PatchSettings(ctx, ann, api.SettingsPatch{DefaultBaseline: new("mine")})
		require.NoError(t, err)
		require.ErrorIs(t, b.catalogue.DeleteBaseline(ctx, ann, "mine"), api.ErrConflict)
		_, err = b.catalogue.PatchSettings(ctx, ann, api.SettingsPatch{DefaultBaseline: new("")})
		require.NoError(t, err)
		require.NoError(t, b.catalogue.DeleteBaseline(ctx, ann, "mine"))
		_, err = b.catalogue.Baseline("mine")
		require.ErrorIs(t, err, api.ErrNotFound)
		kept, err := b.store.Baselines(ctx)
		require.NoError(t, err)
		assert.Empty(t, kept)
	})
}

// The status says what runs, from what, against what.
func TestStatus(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		b.eventually("whole turns", func() bool { return b.totals().OK > 2 })
		s := b.view.Status()
		assert.Equal(t, "1.2.3", s.Version)
		assert.NotEmpty(t, s.GoVersion)
		assert.Positive(t, s.UptimeSeconds)
		assert.Equal(t, "x", s.Config["target.url"])
		assert.True(t, s.Store.OK)
		l := s.Lanes[0]
		assert.True(t, l.State.Running)
		assert.Equal(t, api.QuestionerBuiltIn, l.State.Questioner)
		assert.Equal(t, "test-model", l.Target.Model)
		assert.Equal(t, "test-model", l.Target.Deployment.Model)
		assert.Equal(t, api.SpeculationOff, l.Target.Deployment.Speculation)
		assert.Equal(t, map[string]bool{"nvext": true}, l.Extensions)
		assert.Equal(t, api.CorpusStatus{Name: "small", Starters: 2, Followup: "built-in questioner"}, l.Corpus)
		assert.EqualValues(t, 7, l.Seed)

		assert.NotNil(t, b.lane.Cluster().Workers)
		found, err := b.view.Lane(l.Name)
		require.NoError(t, err)
		assert.Same(t, b.lane, found)
		_, err = b.view.Lane("twin")
		require.ErrorIs(t, err, api.ErrNotFound)
	}, func(o *options) {
		o.config = map[string]string{"target.url": "x"}
		o.Client.(*fake).extensions = map[string]bool{"nvext": true}
	})
}

// Everybody does everything at once, while mode changes come and go and the
// process ends: nothing deadlocks, and the race detector has nothing to say.
func TestHammer(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		done := make(chan struct{})
		go b.drive(done)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				for range 400 {
					b.anything(r)
				}
			})
		}
		within(t, wg.Wait)
		b.stop()
		within(t, func() {
			wg.Go(func() { b.anything(rand.New(rand.NewPCG(2, 2))) })
			wg.Go(b.end)
			wg.Wait()
		})
		close(done)
		assert.Zero(t, b.lane.State().Concurrency.Actual)
	})
}

// drive answers every switch, now and then with a failure.
func (b *booth) drive(done <-chan struct{}) {
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

// anything does one thing that a client or the process might do. What it is
// answered does not matter: most of it conflicts with what the others do.
func (b *booth) anything(r *rand.Rand) {
	ctx, n := b.t.Context(), 1+r.IntN(12)
	mode := []api.ModeState{kv, roundRobin}[r.IntN(2)]
	patches := []api.WorkloadPatch{{Concurrency: &n}, {MaxTokens: &n}, {StartRate: new(float64(100 * n))}}
	actions := []func(){
		func() { _, _ = b.lane.Start(ctx, ann, api.StartRequest{Concurrency: &n}) },
		func() { _, _ = b.lane.Start(ctx, ann, api.StartRequest{}) },
		func() { _, _ = b.lane.Stop(ctx, ann, api.StopRequest{Drain: n%2 == 0}) },
		func() { _, _ = b.lane.Patch(ctx, ann, patches[n%3]) },
		func() {
			_, _ = b.lane.SetMode(ctx, ann, api.ModeRequest{Mode: mode.Mode, Confirm: n == 1})
		},
		func() { _, _ = b.lane.CancelMode(ctx, ann) },
		func() {
			_, _ = b.catalogue.PatchSettings(ctx, ann, api.SettingsPatch{SLO: &api.SLO{TTFT: float64(n), TPOT: 1}})
		},
		func() { _, _ = b.catalogue.SaveBaseline(ctx, ann, imported(fmt.Sprintf("mine %d", n))) },
		func() { b.view.Snapshot() },
		func() { b.view.Status() },
		func() { _ = b.view.Ready() },
		func() { b.lane.Cluster() },
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

// within wants f to return, and shows where everybody hangs if it does not.
func within(t testing.TB, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(3 * limit):
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2)
		t.Fatalf("a deadlock:\n%s", stacks.String())
	}
}
