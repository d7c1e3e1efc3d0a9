package store

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// exported returns the number of turns in the export of all steps, and its last line.
func exported(t *testing.T, s *Store) (n int, last string) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, s.TurnsCSV(t.Context(), &out, api.DefaultLane, 0))
	lines := strings.Split(strings.TrimSpace(out.String()), "\r\n")
	turns, err := api.ReadTurns(&out)
	require.NoError(t, err)
	return len(turns), lines[len(lines)-1]
}

// pagesOf returns the positions of a table's or an index's pages in the file.
func pagesOf(t *testing.T, s *Store, name string) (at []int64) {
	t.Helper()
	rows, err := s.read.Query("SELECT pgoffset FROM dbstat WHERE name = ? ORDER BY pageno", name)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var one int64
		require.NoError(t, rows.Scan(&one))
		at = append(at, one)
	}
	require.NoError(t, rows.Err())
	return at
}

// withTurns returns the path of a closed store with n turns, the pages of the named table or index, and its content.
func withTurns(t *testing.T, dir string, n int, name string) (path string, pages []int64, content []byte) {
	t.Helper()
	s := openTest(t, Options{Dir: dir}, defaultLimits)
	c := conversation(1)
	c.Status = api.ConversationCompleted
	s.SaveConversation(c)
	for i := range n {
		s.SaveTurn(turn(c.ID, i+1))
	}
	flush(t, s)
	pages = pagesOf(t, s, name)
	require.NoError(t, s.Close())
	content, err := os.ReadFile(s.path)
	require.NoError(t, err)
	return s.path, pages, content
}

// Two flipped bytes in an index hide no turn: the index is rebuilt from its table, or the start is refused, both by
// name. The export does not use an index that is not checked at the start.
func TestDamagedIndexHidesNoTurn(t *testing.T) {
	const n = 490
	for _, index := range []string{"turns_by_step", "sqlite_autoindex_turns_1"} {
		dir := t.TempDir()
		path, pages, whole := withTurns(t, dir, n, index)
		rebuilt := 0
		for _, page := range pages {
			for at := page; at < page+4096; at += 293 {
				flipped := bytes.Clone(whole)
				flipped[at] ^= 0x11
				flipped[at+1] ^= 0x11
				require.NoError(t, os.WriteFile(path, flipped, 0o600))
				s, err := open(t.Context(), Options{Dir: dir}, still())
				if err != nil {
					require.ErrorIs(t, err, errDamaged)
					continue
				}
				read, _ := exported(t, s)
				require.Equal(t, n, read, "%s %d: %+v", index, at, s.Status())
				require.Empty(t, s.Status().Damage)
				if s.Status().Notice != "" {
					require.Contains(t, s.Status().Notice, "an index differed from its table, and was rebuilt")
					rebuilt++
				}
				require.NoError(t, s.Close())

				require.NoError(t, os.WriteFile(path, flipped, 0o600))
				unchecked := still()
				unchecked.checked = 0
				s, err = open(t.Context(), Options{Dir: dir}, unchecked)
				if err != nil {
					continue
				}
				read, _ = exported(t, s)
				require.Equal(t, n, read, "%s %d, unchecked: %+v", index, at, s.Status())
				_ = s.Close()
			}
		}
		assert.Positive(t, rebuilt, index)
	}
}

// A damaged page of turns leaves the turns on other pages readable, in exports, lists and conversations, and is named.
func TestDamagedPageLeavesOtherTurnsReadable(t *testing.T) {
	const n = 490
	dir := t.TempDir()
	path, pages, whole := withTurns(t, dir, n, "turns")
	unchecked := still()
	unchecked.checked = 0
	read := map[int]bool{}
	for _, page := range pages[1:] {
		damagedFile := bytes.Clone(whole)
		copy(damagedFile[page:page+4096], bytes.Repeat([]byte("x"), 4096))
		require.NoError(t, os.WriteFile(path, damagedFile, 0o600))
		s, err := open(t.Context(), Options{Dir: dir}, unchecked)
		if err != nil { // the end of the last step is on that page
			require.True(t, damaged(err), "%v", err)
			continue
		}
		got, last := exported(t, s)
		require.Less(t, got, n)
		require.Regexp(t, `^# missing turns: \d+; the database is damaged,,`, last)
		require.Contains(t, s.Status().Damage, "unreadable turns (")
		list, err := s.Conversations(t.Context(), api.ConversationQuery{})
		require.NoError(t, err)
		require.Len(t, list.Conversations, 1)
		_, err = s.Conversation(t.Context(), list.Conversations[0].ID)
		require.NoError(t, err)
		read[got] = true
		_ = s.Close()
	}
	assert.NotEmpty(t, read)
	for got := range read {
		assert.Greater(t, got, n*9/10)
	}
}

// A turn or a document whose data is damaged is left out and counted. All others are read, also at the next start.
func TestDamagedRecordsAreCounted(t *testing.T) {
	const n = 9
	dir := t.TempDir()
	path, _, _ := withTurns(t, dir, n, "turns")
	s := openTest(t, Options{Dir: dir}, still())
	require.NoError(t, s.SaveBaseline(t.Context(), api.Baseline{Name: "ours"}))
	require.NoError(t, s.SaveBaseline(t.Context(), api.Baseline{Name: "theirs"}))
	for id := range int64(3) {
		s.SaveStep(api.StepRecord{Lane: api.DefaultLane, ID: id + 1, Started: t0})
	}
	require.NoError(t, s.Close())
	require.NoError(t, otherProgram("UPDATE turns SET data = substr(data, 1, 40) WHERE number = 3;"+
		"UPDATE turns SET data = replace(data, ':', 'x') WHERE number = 5;"+
		"UPDATE conversations SET status = 'active', ended = NULL;"+
		"UPDATE documents SET data = '' WHERE name = 'ours'; UPDATE steps SET data = '[' WHERE id = 2")(path))
	s = openTest(t, Options{Dir: dir}, still())
	got, last := exported(t, s)
	assert.Equal(t, n-2, got)
	assert.Contains(t, last, "# missing turns: 2; the database is damaged,,")
	list, err := s.Conversations(t.Context(), api.ConversationQuery{})
	require.NoError(t, err)
	require.Len(t, list.Conversations, 1)
	assert.Len(t, list.Conversations[0].Figures, n)
	c, err := s.Conversation(t.Context(), list.Conversations[0].ID)
	require.NoError(t, err)
	assert.Len(t, c.Turns, n-2)
	baselines, err := s.Baselines(t.Context())
	require.NoError(t, err)
	assert.Len(t, baselines, 1)
	steps, err := s.Steps(t.Context(), api.DefaultLane)
	require.NoError(t, err)
	assert.Len(t, steps, 2)
	assert.Contains(t, s.Status().Damage, "unreadable documents (1), steps (1), turns (2); ", "each is counted once")
	assert.True(t, s.Status().OK, "turns are stored")
}
