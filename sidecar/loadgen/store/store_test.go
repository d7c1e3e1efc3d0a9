package store

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var t0 = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// quick returns the default limits with shorter pauses.
func quick() limits {
	q := defaultLimits
	q.gather, q.retryMin, q.retryMax, q.prune = time.Millisecond, time.Millisecond, 5*time.Millisecond, 5*time.Millisecond
	return q
}

// still returns the default limits without maintenance.
func still() limits {
	q := defaultLimits
	q.prune = time.Hour
	return q
}

func openTest(t *testing.T, opts Options, limits limits) *Store {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	s, err := open(t.Context(), opts, limits)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func flush(t *testing.T, s *Store) {
	t.Helper()
	require.NoError(t, s.Flush(t.Context()))
}

func conversation(i int) api.Conversation {
	return api.Conversation{
		ID: fmt.Sprintf("c%05d", i), Lane: api.DefaultLane, Number: int64(i), Topic: "GPU Architecture", Starter: "gpu",
		Status: api.ConversationActive, TurnsPlanned: 3, Started: t0.Add(time.Duration(i) * time.Second),
	}
}

func turn(conversation string, number int) api.Turn {
	return api.Turn{
		Lane:             api.DefaultLane,
		Conversation:     conversation,
		Number:           number,
		RequestID:        fmt.Sprint(conversation, "-", number),
		Step:             1,
		Level:            api.AtConversations(4),
		Mode:             api.ModeKV,
		Speculation:      api.SpeculationOff,
		Counted:          true,
		Status:           api.TurnOK,
		Started:          t0,
		Ended:            t0.Add(30 * time.Second),
		TTFT:             new(0.25),
		TPOT:             new(0.025),
		PromptTokens:     new(3600),
		UserMessage:      "Why?",
		AssistantMessage: "Because.",
	}
}

func turns(t *testing.T, s *Store, lane string, step int64) []api.Turn {
	t.Helper()
	var list []api.Turn
	add := func(t *api.Turn) error { list = append(list, *t); return nil }
	last := step
	if step == 0 {
		last = math.MaxInt64
	}
	unread, err := s.eachTurn(t.Context(), lane, step, last, add, func() error { return nil })
	require.NoError(t, err)
	require.Zero(t, unread)
	return list
}

func TestReopenReturnsEverything(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a dir?with%20odd #characters")
	ctx := t.Context()
	s, err := Open(ctx, Options{Dir: dir})
	require.NoError(t, err)

	c := conversation(1)
	s.SaveConversation(c)
	s.SaveTurn(turn(c.ID, 2))
	s.SaveTurn(turn(c.ID, 1))
	c.Status, c.TurnsDone, c.Ended = api.ConversationCompleted, 2, new(t0.Add(time.Minute))
	s.SaveConversation(c)
	step := api.StepRecord{Lane: api.DefaultLane, ID: 7, Level: api.AtConversations(4), Mode: api.ModeKV, Started: t0}
	s.SaveStep(step)
	step.Settled, step.Ended = new(t0.Add(time.Second)), new(t0.Add(time.Minute))
	s.SaveStep(step)
	event, err := s.SaveEvent(ctx, api.Event{Time: t0, Lane: api.DefaultLane, Kind: api.EventStart, Text: "started"})
	require.NoError(t, err)
	settings := api.Settings{SLO: api.SLO{TTFT: 0.6, TPOT: 0.06}, Title: "Booth"}
	require.NoError(t, s.SaveSettings(ctx, api.Settings{Title: "earlier"}))
	require.NoError(t, s.SaveSettings(ctx, settings))
	table := api.Baseline{
		Name: api.ThisTarget,
		Rows: []api.BaselineRow{{Level: api.AtConversations(4), TTFT: api.Percentiles{P50: new(0.1 + 0.2)}}},
	}
	require.NoError(t, s.SaveBaseline(ctx, table))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "a second Close has no effect")

	s = openTest(t, Options{Dir: dir}, defaultLimits)
	got, err := s.Conversation(ctx, c.ID)
	require.NoError(t, err)
	c.Turns = []api.Turn{turn(c.ID, 1), turn(c.ID, 2)}
	assert.Equal(t, c, got)
	found, err := s.Conversations(ctx, api.ConversationQuery{Topic: "gpu ARCH"})
	require.NoError(t, err)
	figures := api.ConversationTurn{TTFT: new(0.25), PromptTokens: new(3600)}
	c.Turns, c.Figures = nil, []api.ConversationTurn{figures, figures}
	assert.EqualValues(t, []api.Conversation{c}, found.Conversations)
	steps, err := s.Steps(ctx, api.DefaultLane)
	require.NoError(t, err)
	assert.Equal(t, []api.StepRecord{step}, steps)
	events, err := s.Events(ctx, "", 0)
	require.NoError(t, err)
	assert.Equal(t, []api.Event{event}, events)
	assert.NotZero(t, event.ID)
	gotSettings, ok, err := s.Settings(ctx)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, settings, gotSettings)
	tables, err := s.Baselines(ctx)
	require.NoError(t, err)
	assert.Equal(t, []api.Baseline{table}, tables)
	require.NoError(t, s.DeleteBaseline(ctx, "another"))
	require.NoError(t, s.DeleteBaseline(ctx, table.Name))
	tables, err = s.Baselines(ctx)
	require.NoError(t, err)
	assert.Empty(t, tables)
}

func TestReadEmptyStore(t *testing.T) {
	s, ctx := openTest(t, Options{}, defaultLimits), t.Context()
	list, err := s.Conversations(ctx, api.ConversationQuery{})
	require.NoError(t, err)
	assert.Equal(t, api.ConversationList{Conversations: []api.Conversation{}}, list)
	_, err = s.Conversation(ctx, "c1")
	assert.ErrorIs(t, err, api.ErrNotFound)
	_, ok, err := s.Settings(ctx)
	require.NoError(t, err)
	assert.False(t, ok)
	last, err := s.MaxStep(ctx, api.DefaultLane)
	require.NoError(t, err)
	assert.Zero(t, last)
	assert.ErrorIs(t, s.TurnsCSV(ctx, io.Discard, api.DefaultLane, 3), api.ErrNotFound)
	assert.Empty(t, turns(t, s, api.DefaultLane, 0))
	assert.Equal(t, api.StoreStatus{Path: s.path, OK: true}, s.Status())
}

func TestCommitsAreDurable(t *testing.T) {
	s := openTest(t, Options{}, defaultLimits)
	var journal string
	var synchronous int
	require.NoError(t, s.write.QueryRow("PRAGMA journal_mode").Scan(&journal))
	require.NoError(t, s.write.QueryRow("PRAGMA synchronous").Scan(&synchronous))
	assert.Equal(t, "wal", journal)
	assert.Equal(t, 2, synchronous, "FULL")
}

func TestOpenRequiresDirectory(t *testing.T) {
	_, err := Open(t.Context(), Options{})
	var refused *api.FieldError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "data_dir", refused.Field)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Open(t.Context(), Options{Dir: filepath.Join(file, "sub")})
	assert.ErrorContains(t, err, file)
}

// A commit follows the arrival within 200 ms, but not at once: records that arrive
// together are committed together. The clock is the bubble's.
func TestBatchesAreCommittedWithin200ms(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Dir: dir})
		require.NoError(t, err)
		s.SaveTurn(turn("c", 1))
		wait.Advance(90 * time.Millisecond)
		s.SaveTurn(turn("c", 2))
		assert.Empty(t, turns(t, s, api.DefaultLane, 0))
		wait.Advance(110 * time.Millisecond)
		assert.Len(t, turns(t, s, api.DefaultLane, 0), 2)
		require.NoError(t, s.Close())
	})
}

func TestRecordsAfterCloseAreLost(t *testing.T) {
	s := openTest(t, Options{}, defaultLimits)
	s.SaveTurn(turn("c", 1))
	require.NoError(t, s.Close())
	assert.Zero(t, s.LostTurns(), "Close commits queued records")
	s.SaveTurn(turn("c", 2))
	s.SaveConversation(conversation(1)) // not counted, since it is no turn
	assert.EqualValues(t, 1, s.LostTurns())
	assert.ErrorIs(t, s.Flush(t.Context()), ErrClosed)
	_, err := s.SaveEvent(t.Context(), api.Event{})
	assert.ErrorIs(t, err, api.ErrUnavailable)
}

func TestFailingDiskRetries(t *testing.T) {
	for _, c := range []struct{ name, fail, heal string }{
		{"full", "PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1000000"}, // 1 limits the file to its present size
		{"read-only", "PRAGMA query_only = 1", "PRAGMA query_only = 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			limits := quick()
			limits.queue = bounds{turns: 50, bytes: 1 << 30, others: 10}
			s, ctx := openTest(t, Options{}, limits), t.Context()
			s.SaveTurn(turn("before", 1))
			flush(t, s)
			_, err := s.write.Exec(c.fail)
			require.NoError(t, err)

			const sent = 80
			for i := range sent {
				full := turn("during", i)
				full.AssistantMessage = strings.Repeat("long ", 2000) // exceeds the free pages of the file
				s.SaveTurn(full)
			}
			wait.Eventually(t, "the status says so", func() (any, bool) { return s.Status(), !s.Status().OK })
			assert.Contains(t, s.Status().Problem, s.path)
			assert.EqualValues(t, sent-50, s.LostTurns(), "turns beyond the queue's bound are lost")
			assert.Len(t, turns(t, s, api.DefaultLane, 0), 1, "reads succeed while writes fail")
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			assert.ErrorIs(t, s.Flush(short), context.DeadlineExceeded)
			cancel()
			_, err = s.SaveEvent(ctx, api.Event{Text: strings.Repeat("long ", 10_000)})
			assert.ErrorIs(t, err, api.ErrUnavailable, "a change that must be committed is refused")

			_, err = s.write.Exec(c.heal)
			require.NoError(t, err)
			flush(t, s)
			assert.Equal(t, api.StoreStatus{Path: s.path, OK: true, StoredTurns: 51, LostTurns: sent - 50}, s.Status())
			assert.Len(t, turns(t, s, api.DefaultLane, 0), 51)
		})
	}
}

func TestCloseOnFailingDiskCountsLostTurns(t *testing.T) {
	s := openTest(t, Options{}, defaultLimits)
	_, err := s.write.Exec("PRAGMA query_only = 1")
	require.NoError(t, err)
	s.SaveTurn(turn("c", 1))
	s.SaveTurn(turn("c", 2))
	assert.ErrorContains(t, s.Close(), "cannot be written")
	assert.EqualValues(t, 2, s.LostTurns())
}

func TestInvalidRecordDoesNotBlockOthers(t *testing.T) {
	s := openTest(t, Options{}, quick())
	broken := turn("c", 1)
	broken.TTFT = new(math.NaN()) // has no JSON form
	s.SaveTurn(broken)
	s.SaveTurn(turn("c", 2))
	flush(t, s)
	assert.EqualValues(t, 1, s.LostTurns())
	assert.Len(t, turns(t, s, api.DefaultLane, 0), 1)
	assert.True(t, s.Status().OK)
}

func TestQueueBounds(t *testing.T) {
	q := newQueue(bounds{turns: 2, bytes: 100, others: 1})
	assert.True(t, q.push(record{turn: true, bytes: 60}))
	assert.False(t, q.push(record{turn: true, bytes: 60}), "too many bytes")
	assert.True(t, q.push(record{turn: true, bytes: 40}))
	assert.False(t, q.push(record{turn: true}), "too many turns")
	assert.True(t, q.push(record{}), "other records have their own bound")
	assert.False(t, q.push(record{}))
	assert.True(t, q.push(record{done: make(chan struct{})}), "a marker is never refused")
	q.drop(2)
	assert.True(t, q.push(record{turn: true, bytes: 100}), "drop frees space for records")
	assert.Len(t, q.first(10), 3)
}

func TestConversationHasErrorClassOfLastTurn(t *testing.T) {
	s, ctx := openTest(t, Options{}, defaultLimits), t.Context()
	failed, unstored, retired := conversation(3), conversation(2), conversation(1)
	failed.Status, unstored.Status, retired.Status = api.ConversationError, api.ConversationError, api.ConversationRetired
	last := turn(failed.ID, 2)
	last.Status, last.ErrorClass = api.TurnError, api.ErrorStall
	s.SaveTurn(turn(failed.ID, 1))
	s.SaveTurn(last)
	odd := turn(retired.ID, 1)
	odd.ErrorClass = api.ErrorTimeout // ignored, since the conversation did not fail
	s.SaveTurn(odd)
	for _, c := range []api.Conversation{failed, unstored, retired} {
		s.SaveConversation(c)
	}
	flush(t, s)
	list, err := s.Conversations(ctx, api.ConversationQuery{})
	require.NoError(t, err)
	classes := []api.ErrorClass{}
	for _, c := range list.Conversations {
		classes = append(classes, c.ErrorClass)
	}
	assert.Equal(t, []api.ErrorClass{api.ErrorStall, "", ""}, classes)
	one, err := s.Conversation(ctx, failed.ID)
	require.NoError(t, err)
	assert.Equal(t, api.ErrorStall, one.ErrorClass)
}

func TestPageThroughTenThousandConversations(t *testing.T) {
	s := openTest(t, Options{}, defaultLimits)
	const n = 10_000
	// three start in each second, distinguished by their id; every second one is completed, every fifth is of the twin
	_, err := s.write.Exec(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < 9999)
		INSERT INTO conversations (id, lane, number, topic, topic_folded, starter, status, turns_planned, turns_done, started, ended)
		SELECT printf('c%05d', i), iif(i%5, 'main', 'twin'), i, iif(i%2, 'GPU', 'Über'), iif(i%2, 'gpu', 'über'), '',
		iif(i%2, 'active', 'completed'), 3, 0, i/3*1000000000, i/3*1000000000 FROM n`)
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		q    api.ConversationQuery
		want int
	}{
		{"all", api.ConversationQuery{Limit: 1000}, n},
		{"a status", api.ConversationQuery{Limit: 999, Status: api.ConversationCompleted}, n / 2},
		{"a lane and a topic in another case", api.ConversationQuery{Limit: 1000, Lane: "twin", Topic: "üBER"}, n / 10},
		{"wild cards are plain text", api.ConversationQuery{Topic: "%"}, 0},
		{"those in progress at a time", api.ConversationQuery{From: 5000, To: 7000}, 9},
		{"those that had begun", api.ConversationQuery{To: 1000}, 6},
		{"a status that none has", api.ConversationQuery{Status: api.ConversationError}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			ids := pageThrough(t, s, c.q)
			assert.Len(t, ids, c.want)
			assert.True(t, slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }), "newest first")
			slices.Sort(ids)
			assert.Len(t, slices.Compact(ids), c.want, "none twice")
		})
	}
	first, err := s.Conversations(t.Context(), api.ConversationQuery{})
	require.NoError(t, err)
	assert.Len(t, first.Conversations, 50)
}

func pageThrough(t *testing.T, s *Store, q api.ConversationQuery) []string {
	t.Helper()
	var ids []string
	for {
		list, err := s.Conversations(t.Context(), q)
		require.NoError(t, err)
		for _, c := range list.Conversations {
			ids = append(ids, c.ID)
		}
		if q.Cursor = list.NextCursor; q.Cursor == "" {
			return ids
		}
	}
}

// A page costs the same at any position: it is one search in an index that is in the right order.
func TestPageQueriesUseIndexes(t *testing.T) {
	s := openTest(t, Options{}, defaultLimits)
	for _, q := range []api.ConversationQuery{
		{},
		{Lane: "main"},
		{Topic: "gpu"},
		{Lane: "main", From: 1, To: 2},
		{Status: api.ConversationActive},
		{Status: api.ConversationActive, Lane: "main", Topic: "gpu"},
		{Cursor: cursorAfter(conversation(1))},
		{Status: api.ConversationError, Cursor: cursorAfter(conversation(1))},
	} {
		where, args, err := conditions(q)
		require.NoError(t, err)
		plan := explain(t, s, "SELECT id FROM conversations WHERE "+where+" ORDER BY started DESC, id DESC", args...)
		assert.Contains(t, plan, "INDEX conversations_by")
		assert.NotContains(t, plan, "TEMP B-TREE", "%+v", q)
	}
	assert.Equal(t, "SEARCH turns USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)\n",
		explain(t, s, selectPage, "main", 1, 1, 1, page))
}

func explain(t *testing.T, s *Store, text string, args ...any) string {
	t.Helper()
	rows, err := s.read.Query("EXPLAIN QUERY PLAN "+text, args...)
	require.NoError(t, err)
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		plan.WriteString(detail + "\n")
	}
	require.NoError(t, rows.Err())
	return plan.String()
}

func TestInvalidQueryNamesField(t *testing.T) {
	s, ctx := openTest(t, Options{}, defaultLimits), t.Context()
	list := func(q api.ConversationQuery) error { _, err := s.Conversations(ctx, q); return err }
	_, eventsErr := s.Events(ctx, "", 1001)
	for _, c := range []struct {
		err   error
		field string
	}{
		{list(api.ConversationQuery{Limit: -1}), "limit"},
		{list(api.ConversationQuery{Limit: 1001}), "limit"},
		{list(api.ConversationQuery{Status: "lost"}), "status"},
		{list(api.ConversationQuery{Cursor: "not base64!"}), "cursor"},
		{list(api.ConversationQuery{Cursor: "bm9udW1iZXI"}), "cursor"}, // "nonumber"
		{list(api.ConversationQuery{Cursor: "MTI6"}), "cursor"},        // "12:", no id
		{s.TurnsCSV(ctx, io.Discard, "main", -1), "step"},
		{eventsErr, "limit"},
	} {
		var refused *api.FieldError
		require.ErrorAs(t, c.err, &refused, c.field)
		assert.Equal(t, c.field, refused.Field)
	}
}

func TestEventsAndStepsPerLane(t *testing.T) {
	s, ctx := openTest(t, Options{}, defaultLimits), t.Context()
	for _, lane := range []string{"main", "twin", "", "main"} { // an event of settings concerns all lanes
		_, err := s.SaveEvent(ctx, api.Event{Time: t0, Lane: lane, Kind: api.EventStep, Text: lane})
		require.NoError(t, err)
	}
	events, err := s.Events(ctx, "main", 2)
	require.NoError(t, err)
	require.Len(t, events, 2)
	assert.Equal(t, []int64{4, 3}, []int64{events[0].ID, events[1].ID})
	events, err = s.Events(ctx, "", 10)
	require.NoError(t, err)
	assert.Len(t, events, 4)

	s.SaveStep(api.StepRecord{Lane: "main", ID: 3, Started: t0})
	s.SaveStep(api.StepRecord{Lane: "twin", ID: 9, Started: t0})
	late := turn("c", 1)
	late.Step = 4 // its step record was lost
	s.SaveTurn(late)
	flush(t, s)
	for lane, want := range map[string]int64{"main": 4, "twin": 9, "none": 0} {
		last, err := s.MaxStep(ctx, lane)
		require.NoError(t, err)
		assert.Equal(t, want, last, lane)
	}
	assert.Empty(t, turns(t, s, "twin", 9), "a step without turns is no error")
}

func TestTurnsCSV(t *testing.T) {
	s := openTest(t, Options{}, defaultLimits)
	const n = page + 10 // more than one page
	for i := range n {
		one := turn("c", i+1)
		one.Step = int64(2 - i%2)
		s.SaveTurn(one)
	}
	failed := turn("d", 1)
	failed.Step, failed.Status, failed.ErrorClass, failed.TTFT = 1, api.TurnError, api.ErrorStream, nil
	failed.ErrorMessage, failed.Worker, failed.FinishReason = "=said \"no\",\nthen nothing", "-5", "@stop"
	s.SaveTurn(failed)
	flush(t, s)

	var out strings.Builder
	require.NoError(t, s.TurnsCSV(t.Context(), &out, api.DefaultLane, 1))
	assert.True(t, strings.HasPrefix(out.String(), "lane,conversation,turn,"))
	assert.Contains(t, out.String(), "\"'=said \"\"no\"\",\\nthen nothing\"")
	assert.Contains(t, out.String(), ",'@stop,-5,", "no text is a formula, and a number is one still")
	assert.NotContains(t, out.String(), "Because.", "messages are left out")
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+n/2+1)
	ttft := slices.Index(rows[0], "ttft_seconds")
	assert.Equal(t, "0.25", rows[1][ttft])
	assert.Empty(t, rows[len(rows)-1][ttft])
	in := slices.Index(rows[0], "counts_in")
	assert.Equal(t, [2]string{"latencies", "errors"}, [2]string{rows[1][in], rows[len(rows)-1][in]})

	out.Reset()
	require.NoError(t, s.TurnsCSV(t.Context(), &out, api.DefaultLane, 0))
	assert.Equal(t, n+2, strings.Count(out.String(), "\r\n"), "header, all turns, and no line break of a message")

	out.Reset()
	assert.ErrorIs(t, s.TurnsCSV(t.Context(), &out, api.DefaultLane, 3), api.ErrNotFound)
	assert.Zero(t, out.Len(), "nothing is written before the step is known")

	var all, later strings.Builder
	require.NoError(t, s.TurnsCSV(t.Context(), &all, api.DefaultLane, 0))
	require.NoError(t, s.TurnsCSVFrom(t.Context(), &out, map[string]int64{api.DefaultLane: 1}))
	assert.Equal(t, all.String(), out.String())
	require.NoError(t, s.TurnsCSVFrom(t.Context(), &later, map[string]int64{api.DefaultLane: 2}))
	assert.Equal(t, 1+n/2, strings.Count(later.String(), "\r\n"), "the header, and the turns of step 2")
	steps := map[int64]int{}
	require.NoError(t, s.TurnsFrom(t.Context(), api.DefaultLane, 2,
		func(one *api.Turn) error { steps[one.Step]++; return nil }))
	assert.Equal(t, map[int64]int{2: n / 2}, steps)
	enough := errors.New("enough")
	assert.ErrorIs(t, s.TurnsFrom(t.Context(), api.DefaultLane, 1, func(*api.Turn) error { return enough }), enough)
}

// writer is an io.Writer from a function.
type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// An export ends within a page after its reader fails or its context ends.
func TestTurnsCSVEndsWithReader(t *testing.T) {
	s := openTest(t, Options{}, defaultLimits)
	fill(t, s, 10*page/5, 1)
	gone := errors.New("gone")
	written := 0
	assert.ErrorIs(t, s.TurnsCSV(t.Context(), writer(func([]byte) (int, error) { written++; return 0, gone }), "main", 1),
		gone)
	assert.Equal(t, 1, written)

	ctx, cancel := context.WithCancel(t.Context())
	written = 0
	err := s.TurnsCSV(ctx, writer(func(b []byte) (int, error) { written++; cancel(); return len(b), nil }), "main", 0)
	assert.ErrorIs(t, err, context.Canceled)
	assert.NotErrorIs(t, err, api.ErrUnavailable)
	assert.Equal(t, 1, written)

	s.paging <- struct{}{} // as while another page is being read
	assert.ErrorIs(t, s.TurnsCSV(ctx, io.Discard, "main", 0), context.Canceled)
	<-s.paging
}

// pruned calls prune until it has nothing to remove.
func pruned(t *testing.T, s *Store) {
	t.Helper()
	for s.prune() {
		require.True(t, s.Status().OK)
	}
}

func TestRetentionByCountKeepsNewestAndActive(t *testing.T) {
	s := openTest(t, Options{MaxConversations: 100}, still())
	orphan := turn("lost", 1) // its conversation never reached the disk
	s.SaveTurn(orphan)
	orphan.Ended = t0.Add(-time.Hour)
	s.SaveTurn(orphan)
	for i := range 300 {
		c := conversation(i)
		if i >= 2 {
			c.Status = api.ConversationCompleted
		}
		s.SaveConversation(c)
		s.SaveTurn(turn(c.ID, 1))
	}
	flush(t, s)
	pruned(t, s)
	ids := pageThrough(t, s, api.ConversationQuery{})
	require.Len(t, ids, 100)
	assert.Equal(t, "c00299", ids[0])
	assert.Equal(t, []string{"c00001", "c00000"}, ids[98:], "active conversations are kept, although they are the oldest")
	assert.Len(t, turns(t, s, api.DefaultLane, 0), 100, "their turns and the orphan are removed")
}

// The store removes old conversations without a call.
func TestRetentionByAge(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Dir: dir, MaxAge: time.Minute})
		require.NoError(t, err)
		began := time.Now()
		for i := range 3 {
			c := conversation(i)
			c.Started, c.Status = began.Add(time.Duration(i)*30*time.Second), api.ConversationCompleted
			s.SaveConversation(c)
		}
		flush(t, s)
		wait.Advance(59 * time.Second)
		assert.Len(t, pageThrough(t, s, api.ConversationQuery{}), 3)
		wait.Advance(41 * time.Second) // the first two began 100 and 70 seconds ago
		assert.Equal(t, []string{"c00002"}, pageThrough(t, s, api.ConversationQuery{}))
		require.NoError(t, s.Close())
	})
}

// The size is limited by the option, and by three quarters of the disk.
func TestRetentionByBytes(t *testing.T) {
	onSmallDisk := still()
	onSmallDisk.disk = func(string) int64 { return MinBytes / 3 * 4 }
	testRetention(t, openTest(t, Options{MaxBytes: MinBytes}, still()))
	testRetention(t, openTest(t, Options{}, onSmallDisk))
}

func testRetention(t *testing.T, s *Store) {
	t.Helper()
	const n = 400
	fill(t, s, n, 8000) // about 24 MB
	pruned(t, s)
	now, err := measure(t.Context(), s.read)
	require.NoError(t, err)
	assert.Zero(t, s.excess(now))
	assert.LessOrEqual(t, fileSize(t, s), int64(MinBytes), "the file shrinks below the limit")
	ids := pageThrough(t, s, api.ConversationQuery{Limit: 1000})
	assert.Less(t, len(ids), n)
	assert.Greater(t, len(ids), n/4, "only as many are removed as necessary")
	assert.Equal(t, fmt.Sprintf("main-%d", n-1), ids[0], "the newest are kept")
	assert.Len(t, turns(t, s, api.DefaultLane, 1), 5*len(ids))
}

// The size stays limited while the writer is too busy for its maintenance.
func TestSizeIsLimitedUnderLoad(t *testing.T) {
	s := openTest(t, Options{MaxBytes: MinBytes}, still())
	const n = 1600 // about 32 MB
	for i := range n {
		c := conversation(i)
		c.Status = api.ConversationCompleted
		s.SaveConversation(c)
		long := turn(c.ID, 1)
		long.AssistantMessage = strings.Repeat("long ", 4000)
		s.SaveTurn(long)
		if i%50 == 49 {
			flush(t, s)
		}
	}
	assert.Less(t, fileSize(t, s), int64(MinBytes)+6<<20, "the limit, and what is between two checkpoints")
	assert.EqualValues(t, n, s.Status().StoredTurns)
	assert.Equal(t, fmt.Sprintf("c%05d", n-1), pageThrough(t, s, api.ConversationQuery{})[0], "the newest are kept")
}

// fill stores ended conversations with five turns each in one step. The answers have the given size. Conversations
// differ in id, number and times.
func fill(t *testing.T, s *Store, conversations, answer int) {
	t.Helper()
	data, err := encode(turn("main-1", 1))
	require.NoError(t, err)
	_, err = s.write.Exec(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < ?)
		INSERT INTO conversations
			(id, lane, number, topic, topic_folded, starter, status, turns_planned, turns_done, started, ended)
		SELECT printf('main-%d', i), 'main', i, 'GPU', 'gpu', 'gpu', 'completed', 5, 5,
			i*1000000000, (i+60)*1000000000 FROM n`,
		conversations-1)
	require.NoError(t, err)
	_, err = s.write.Exec(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < ?)
		INSERT INTO turns (conversation, number, lane, step, ended, data, user_message, assistant_message)
		SELECT printf('main-%d', i/5), i%5+1, 'main', 1, (i/5+60)*1000000000, ?, 'Please elaborate.',
			printf('%.*c', ?, 'x') FROM n`,
		5*conversations-1, data, answer)
	require.NoError(t, err)
}

func fileSize(t *testing.T, s *Store) int64 {
	t.Helper()
	info, err := os.Stat(s.path)
	require.NoError(t, err)
	return info.Size()
}

// The file of an earlier version, which cannot shrink, reuses the space of removed conversations.
func TestFileOfEarlierVersionReusesSpace(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kvbooth.db"), nil, 0o600))
	old, err := openDB(filepath.Join(dir, "kvbooth.db"), 1, "journal_mode(WAL)")
	require.NoError(t, err)
	require.NoError(t, migrate(t.Context(), old))
	require.NoError(t, old.Close())
	reserve := filepath.Join(dir, "kvbooth.reserve")
	require.NoError(t, os.WriteFile(reserve, make([]byte, 4096), 0o600))
	s := openTest(t, Options{Dir: dir, MaxBytes: MinBytes}, still())
	assert.NoFileExists(t, reserve)
	fill(t, s, 400, 8000) // about 24 MB
	pruned(t, s)
	n, err := measure(t.Context(), s.read)
	require.NoError(t, err)
	assert.Zero(t, s.excess(n))
	assert.Less(t, (n.pages-n.free)*n.page, int64(MinBytes))
	assert.Positive(t, n.free)
}

// The store of a killed process has all that was committed. Recovery cancels its conversations, and ends a step with
// the turn that was stored last, without comparing all turns. Tests of cmd/booth kill a real process.
func TestRecoveryAfterKill(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{}, still())
	c, last := conversation(1), turn("c00001", 2)
	last.Ended = t0.Add(20 * time.Second)
	s.SaveConversation(c)
	s.SaveStep(api.StepRecord{Lane: c.Lane, ID: 1, Started: t0})
	s.SaveTurn(turn(c.ID, 1)) // took 30 s
	s.SaveTurn(last)
	flush(t, s)
	for _, name := range []string{"kvbooth.db", "kvbooth.db-wal"} { // as a killed process leaves them
		data, err := os.ReadFile(filepath.Join(filepath.Dir(s.path), name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	s = openTest(t, Options{Dir: dir}, defaultLimits)
	c.Status, c.TurnsDone, c.Ended = api.ConversationCancelled, 2, new(t0.Add(30*time.Second))
	c.Turns = []api.Turn{turn(c.ID, 1), last}
	got, err := s.Conversation(t.Context(), c.ID)
	require.NoError(t, err)
	assert.Equal(t, c, got)
	steps, err := s.Steps(t.Context(), c.Lane)
	require.NoError(t, err)
	assert.Equal(t, []api.StepRecord{{Lane: c.Lane, ID: 1, Started: t0, Ended: &last.Ended}}, steps)
}

func TestOldEventsAndStepsAreRemoved(t *testing.T) {
	s := openTest(t, Options{}, defaultLimits)
	_, err := s.write.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 10010)
		INSERT INTO events (time, lane, kind, by, text) SELECT i, '', 'start', '', '' FROM n`)
	require.NoError(t, err)
	_, err = s.write.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 10010)
		INSERT INTO steps (lane, id, started, ended, data) SELECT 'main', i, i, nullif(i, 3), '{}' FROM n`)
	require.NoError(t, err)
	s.prune()
	var events, steps int
	require.NoError(t, s.read.QueryRow("SELECT count(*) FROM events").Scan(&events))
	require.NoError(t, s.read.QueryRow("SELECT count(*) FROM steps").Scan(&steps))
	assert.Equal(t, 10_000, events)
	assert.Equal(t, 10_001, steps, "the step in progress is kept")
}

func TestReadWhileWriting(t *testing.T) {
	s := openTest(t, Options{MaxConversations: 50}, quick())
	ctx := t.Context()
	const writers, each = 4, 50
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				c := conversation(w*each + i)
				c.Status = api.ConversationCompleted
				s.SaveConversation(c)
				s.SaveTurn(turn(c.ID, 1))
			}
			_, err := s.SaveEvent(ctx, api.Event{Time: t0, Kind: api.EventStep})
			assert.NoError(t, err)
			assert.NoError(t, s.Flush(ctx))
		})
		group.Go(func() {
			for range 10 {
				list, err := s.Conversations(ctx, api.ConversationQuery{Limit: 20})
				assert.NoError(t, err)
				for _, c := range list.Conversations {
					if _, err := s.Conversation(ctx, c.ID); !errors.Is(err, api.ErrNotFound) { // it may have been removed
						assert.NoError(t, err)
					}
				}
				assert.NoError(t, s.TurnsCSV(ctx, io.Discard, api.DefaultLane, 0))
			}
		})
	}
	group.Wait()
	assert.Equal(t, api.StoreStatus{Path: s.path, OK: true, StoredTurns: writers * each}, s.Status())
}

func TestEndedContextIsNotUnavailable(t *testing.T) {
	s := openTest(t, Options{}, defaultLimits)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.SaveEvent(ctx, api.Event{})
	assert.ErrorIs(t, err, context.Canceled)
	assert.NotErrorIs(t, err, api.ErrUnavailable)
	_, err = s.Conversations(ctx, api.ConversationQuery{})
	assert.ErrorIs(t, err, context.Canceled)
}

// ReadBaselines works beside a process that uses the directory, and creates nothing without
// a store.
func TestReadBaselines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	none, err := ReadBaselines(t.Context(), filepath.Join(dir, "none"))
	require.NoError(t, err)
	require.Empty(t, none)
	require.NoDirExists(t, filepath.Join(dir, "none"))

	s := openTest(t, Options{Dir: dir}, defaultLimits)
	b := api.Baseline{Name: "ours", Rows: []api.BaselineRow{{Level: api.AtConversations(60), Mode: api.ModeKV}}}
	require.NoError(t, s.SaveBaseline(t.Context(), b))
	for range 2 {
		all, err := ReadBaselines(t.Context(), dir)
		require.NoError(t, err)
		require.Equal(t, []api.Baseline{b}, all)
		require.NoError(t, s.Close())
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kvbooth.db"),
		[]byte("no database, and long enough to be read as one"), 0o600))
	_, err = ReadBaselines(t.Context(), dir)
	require.Error(t, err)
}

// Documents of former versions have earlier names.
func TestReadEarlierNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir}, defaultLimits)
	before := map[string]any{"name": "ours", "workload": map[string]any{"think_seconds": 2}}
	require.NoError(t, s.saveDocument(t.Context(), baselineKind, "ours", before))
	all, err := s.Baselines(t.Context())
	require.NoError(t, err)
	require.Equal(t, new(2.), all[0].Workload.ThinkTime)
	all, err = ReadBaselines(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, new(2.), all[0].Workload.ThinkTime)
}
