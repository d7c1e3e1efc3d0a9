package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// overwrite returns a change of a file that writes n characters at an offset.
func overwrite(at int64, n int) func(path string) error {
	return func(path string) error {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = file.WriteAt([]byte(strings.Repeat("x", n)), at)
		return err
	}
}

// write returns a change of a file that replaces its content.
func write(text string) func(path string) error {
	return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

// cut returns a change of a file that leaves only its first bytes.
func cut(bytes int64) func(path string) error {
	return func(path string) error { return os.Truncate(path, bytes) }
}

// all returns a change that consists of several.
func all(changes ...func(path string) error) func(path string) error {
	return func(path string) (err error) {
		for _, change := range changes {
			err = errors.Join(err, change(path))
		}
		return err
	}
}

// otherProgram returns a change of a database that another program makes with these statements.
func otherProgram(statements string) func(path string) error {
	return func(path string) error {
		db, err := openDB(path, 1)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.Exec(statements)
		return err
	}
}

// sums returns checksums of a database and its log.
func sums(t *testing.T, path string) (sums [2]string) {
	t.Helper()
	for i, path := range []string{path, path + "-wal"} {
		text, err := os.ReadFile(path)
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		if err == nil && (i == 0 || len(text) > 0) { // an empty log counts as none
			sums[i] = fmt.Sprintf("%d bytes %x", len(text), sha256.Sum256(text))
		}
	}
	return sums
}

// A file that is not a complete database of this version is left unchanged, and the error names the remedy.
func TestOpenLeavesOtherFilesUnchanged(t *testing.T) {
	const move, restore = "move it out of the directory", "restore a backup"
	orphan := func(path string) error { return os.WriteFile(path+"-wal", make([]byte, 4096), 0o600) }
	const notes, newer = "CREATE TABLE notes (text);", "PRAGMA user_version = 99"
	for _, c := range []struct {
		name         string
		change       func(path string) error
		want, advice string
	}{
		{"a text", write(strings.Repeat("not a database. ", 100)), "no database of this program", move},
		{"a few bytes", write("SQLite"), "no database of this program: it has 6 bytes", move},
		{"a database of another program", all(write(""), otherProgram(notes)), "it has other tables", move},
		{"one with a version of its own", all(write(""), otherProgram(notes+newer)), "it has other tables", move},
		{"a newer version", otherProgram(newer), "version 99", "use that version"},
		{"a table that is missing", otherProgram("DROP TABLE steps"), "damaged", restore},
		{"a damaged page", overwrite(5*4096, 4096), "damaged", restore},
		{"an empty file", cut(0), "the file is empty", restore},
		{"an empty file beside its log", all(cut(0), orphan), "the file is empty", restore},
		{"a log without its file", all(os.Remove, orphan), "it is missing beside its log kvbooth.db-wal", restore},
		{"the first half", cut(5 * 4096), "damaged", restore},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, Options{Dir: dir}, defaultLimits)
			s.SaveTurn(turn("c", 1))
			require.NoError(t, s.Close())
			require.NoError(t, c.change(s.path))
			before := sums(t, s.path)
			for range 2 { // the second call shows that the first released the lock
				_, err := Open(t.Context(), Options{Dir: dir})
				require.ErrorContains(t, err, c.want)
				assert.ErrorContains(t, err, s.path)
				assert.Contains(t, Advice(err), c.advice)
			}
			assert.Equal(t, before, sums(t, s.path))
		})
	}
}

// Changes to the files while they are in use are reported, turns count as lost and changes are refused. The files are
// not written any more, not even by Close.
func TestFilesChangedWhileInUse(t *testing.T) {
	beside := func(name string, change func(path string) error) func(path string) error {
		return func(path string) error { return change(filepath.Join(filepath.Dir(path), name)) }
	}
	another := write("another")
	for _, c := range []struct {
		name   string
		change func(path string) error
		want   string // empty: the change is harmless
	}{
		{"removed", os.Remove, "kvbooth.db was removed or replaced"},
		{"removed with its log", all(os.Remove, beside("kvbooth.db-wal", os.Remove)), "was removed or replaced"},
		{"without its log", beside("kvbooth.db-wal", os.Remove), "kvbooth.db-wal was removed"},
		{"without its index", beside("kvbooth.db-shm", os.Remove), "kvbooth.db-shm was removed"},
		{"without its lock", beside("lock", os.Remove), "lock was removed"},
		{"replaced", all(os.Remove, another, beside("kvbooth.db-wal", another)), "was removed or replaced"},
		{"overwritten", write(strings.Repeat("x", 100_000)), "damaged"},
		{"overwritten in the middle", overwrite(5*4096, 4096), "damaged"},
		{"overwritten at the beginning", overwrite(0, 100), "damaged"},
		{"cut", cut(3 * 4096), "damaged"},
		{"emptied", cut(0), "damaged"},
		{"changed by a program that means well", otherProgram(
			"INSERT INTO events (time, lane, kind, by, text) VALUES (1, '', '', '', ''); PRAGMA wal_checkpoint"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, ctx := openTest(t, Options{}, quick()), t.Context()
			for i := range 10 {
				s.SaveTurn(turn("c", i))
			}
			flush(t, s)
			wait.Eventually(t, "the log is moved into the database", func() (any, bool) {
				s.files.mu.Lock()
				defer s.files.mu.Unlock()
				return s.files.pending, s.files.pending == 0
			})
			require.NoError(t, c.change(s.path))
			before := sums(t, s.path)
			_, err := s.SaveEvent(ctx, api.Event{})
			if c.want == "" {
				require.NoError(t, err)
				require.NoError(t, s.Close())
				assert.EqualValues(t, 10, s.Status().StoredTurns)
				return
			}
			require.ErrorIs(t, err, api.ErrUnavailable)
			assert.ErrorContains(t, err, c.want)
			wait.Eventually(t, "the status says so", func() (any, bool) { return s.Status(), !s.Status().OK })
			assert.Contains(t, s.Status().Problem, c.want)
			s.SaveTurn(turn("d", 1))
			require.ErrorContains(t, s.Close(), c.want)
			assert.EqualValues(t, 1, s.LostTurns())
			assert.Equal(t, before, sums(t, s.path))
		})
	}
}

func TestRestoredFileIsUsedAgain(t *testing.T) {
	s := openTest(t, Options{}, quick())
	require.NoError(t, os.Rename(s.path, s.path+".away"))
	s.SaveTurn(turn("c", 1))
	wait.Eventually(t, "the status says so", func() (any, bool) { return s.Status(), !s.Status().OK })
	require.NoError(t, os.Rename(s.path+".away", s.path))
	flush(t, s)
	assert.Equal(t, api.StoreStatus{Path: s.path, OK: true, StoredTurns: 1}, s.Status())
}

// smallDisk simulates a disk of so many bytes, some of which other files use.
func smallDisk(l *limits, bytes int64, others *atomic.Int64) {
	l.space = func(dir string) (free, size int64) {
		free = bytes - others.Load()
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				free -= info.Size()
			}
		}
		return max(free, 0), bytes
	}
}

// A database removes its oldest conversations before it fills the disk, returns their space, and reports what it keeps.
func TestPruneBeforeDatabaseFillsDisk(t *testing.T) {
	const bytes = 10 << 20
	l := still()
	var others, least atomic.Int64 // atomic, since the writer reads them
	least.Store(bytes)
	smallDisk(&l, bytes, &others)
	inner := l.space
	l.space = func(dir string) (free, size int64) {
		free, size = inner(dir)
		least.Store(min(least.Load(), free))
		return free, size
	}
	s := openTest(t, Options{}, l)
	const n = 900
	for i := range n { // each has about 20 kB
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
	assert.Positive(t, least.Load(), "the disk was never full")
	assert.Zero(t, s.LostTurns())
	assert.EqualValues(t, n, s.Status().StoredTurns)
	ids := pageThrough(t, s, api.ConversationQuery{})
	assert.Greater(t, len(ids), 200, "only as many are removed as necessary")
	assert.Equal(t, fmt.Sprintf("c%05d", n-1), ids[0], "the newest are kept")
	assert.Contains(t, s.Status().Notice, "the disk is nearly full")
	assert.Contains(t, s.Status().Notice, "are kept")
	assert.FileExists(t, s.reservePath())
}

// Where other files fill the disk, nothing is removed, and the store continues in the space of the reserve.
func TestReserveUsedWhenOtherFilesFillDisk(t *testing.T) {
	l := still()
	var others atomic.Int64
	smallDisk(&l, 100<<20, &others)
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir}, l)
	assert.FileExists(t, s.reservePath())
	fill(t, s, 10, 1000)
	others.Store(99 << 20)
	assert.False(t, s.maintain())
	assert.Len(t, pageThrough(t, s, api.ConversationQuery{}), 10)
	assert.Empty(t, s.Status().Notice)
	require.NoError(t, s.Close())
	s = openTest(t, Options{Dir: dir}, l)
	assert.NoFileExists(t, s.reservePath(), "opening requires free space")
	others.Store(0)
	s.maintain()
	assert.FileExists(t, s.reservePath())
}

// While the process runs, a jump of the clock removes nothing too early, and the oldest are removed first.
func TestRetentionAfterClockJump(t *testing.T) {
	now := time.Now()
	s := openTest(t, Options{MaxAge: 24 * time.Hour, MaxConversations: 2, Now: func() time.Time { return now }}, still())
	began := now
	save := func(i int) {
		c := conversation(i)
		c.Started, c.Status = now, api.ConversationCompleted
		s.SaveConversation(c)
		flush(t, s)
	}
	kept := func() []string {
		pruned(t, s)
		return pageThrough(t, s, api.ConversationQuery{})
	}
	save(0)
	now = began.AddDate(10, 0, 0)
	assert.Equal(t, []string{"c00000"}, kept(), "after a clock jump of ten years forward")
	save(1)
	now = began.Add(-time.Hour)
	save(2)
	assert.ElementsMatch(t, []string{"c00001", "c00002"}, kept(), "after a clock jump of an hour back")
}

// A lock may hold within one machine only. Another machine takes the directory after the first one's claim has expired,
// and the first one, which may have been suspended, then stops writing.
func TestClaimAcrossMachines(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	elsewhere := holder{PID: 7, Owner: "10.0.0.2:8088", Machine: "elsewhere", Claim: "theirs"}
	l := quick()
	l.beat = time.Millisecond
	s := openTest(t, Options{Dir: dir, Owner: "10.0.0.1:8088"}, l)
	_, err := takeClaim(ctx, dir, elsewhere, 100*time.Millisecond)
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	assert.Equal(t, "10.0.0.1:8088", locked.Owner)
	require.NoError(t, s.Close())
	_, err = takeClaim(ctx, dir, elsewhere, time.Hour)
	require.NoError(t, err, "opening does not wait for an ended process")

	require.NoError(t, os.Remove(holderPath(dir)))
	s = openTest(t, Options{Dir: dir}, still()) // does not touch its claim, as while suspended
	_, err = takeClaim(ctx, dir, elsewhere, time.Millisecond)
	require.NoError(t, err)
	_, err = s.SaveEvent(ctx, api.Event{})
	assert.ErrorIs(t, err, errTaken)
	s.SaveTurn(turn("c", 1))
	assert.ErrorContains(t, s.Close(), "another process has taken the data directory: process 7 at 10.0.0.2:8088")
	assert.Equal(t, elsewhere, readHolder(holderPath(dir)), "the claim of the other process stays")
}

// Locked names the holder if it can be read. It creates no file, and leaves the lock free.
func TestLockedNamesHolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, Locked(dir))
	require.NoDirExists(t, dir)
	for owner, want := range map[string]string{"127.0.0.1:18088": " at 127.0.0.1:18088:", "": ":"} {
		s := openTest(t, Options{Dir: dir, Owner: owner}, defaultLimits)
		assert.ErrorContains(t, Locked(dir), fmt.Sprintf("in use by process %d%s", os.Getpid(), want))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "lock.json"), []byte("{"), 0o600)) // as during a write
		_, err := Open(t.Context(), Options{Dir: dir})
		assert.ErrorContains(t, err, "in use by another process:")
		require.NoError(t, s.Close())
		require.NoError(t, Locked(dir))
	}
}

func TestDiscardRemovesOnlyWhatOpenMade(t *testing.T) {
	root := t.TempDir()
	for _, c := range []struct{ dir, left string }{{"a/b/c", root}, {"", root}} {
		s := openTest(t, Options{Dir: filepath.Join(root, c.dir)}, defaultLimits)
		require.NoError(t, s.Discard())
		left, err := os.ReadDir(c.left)
		require.NoError(t, err)
		assert.Empty(t, left)
	}
	s := openTest(t, Options{Dir: root}, defaultLimits)
	s.SaveTurn(turn("c", 1))
	require.NoError(t, s.Close())
	s = openTest(t, Options{Dir: root}, defaultLimits)
	require.NoError(t, s.Discard())
	s = openTest(t, Options{Dir: root}, defaultLimits)
	assert.Len(t, turns(t, s, api.DefaultLane, 0), 1)
}

// A turn that is saved again, as by a member after a kill, is stored and counted once.
func TestRepeatedTurnCountsOnce(t *testing.T) {
	s := openTest(t, Options{}, quick())
	again := turn("c", 1)
	again.AssistantMessage = "Once more."
	for _, one := range []api.Turn{turn("c", 1), again} {
		s.SaveTurn(one)
		flush(t, s)
	}
	assert.EqualValues(t, 1, s.Status().StoredTurns)
	c, err := s.Conversation(t.Context(), "c")
	require.ErrorIs(t, err, api.ErrNotFound, "%v", c)
	assert.Len(t, turns(t, s, api.DefaultLane, 0), 1)
}
