package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// A file that is not a complete database of this version is left unchanged, and the error names the remedy.
func TestOpenLeavesOtherFilesUnchanged(t *testing.T) {
	const move, restore = "move it out of the directory", "restore a backup"
	const notes, newer = "CREATE TABLE notes (text);", "PRAGMA user_version = 99"
	for _, c := range []struct {
		name         string
		change       func(path string) error
		want, advice string
	}{
		{"a text", write(strings.Repeat("not a database. ", 100)), "no database of this program", move},
		{"a few bytes", write("SQLite"), "no database of this program", move},
		{"a database of another program", all(write(""), otherProgram(notes)), "it has other tables", move},
		{"one with a version of its own", all(write(""), otherProgram(notes+newer)), "it has other tables", move},
		{"a newer version", otherProgram(newer), "version 99", "use that version"},
		{"a damaged page", overwrite(5*4096, 4096), "damaged", restore},
		{"the first half", cut(5 * 4096), "damaged", restore},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, Options{Dir: dir}, defaultLimits)
			s.SaveTurn(turn("c", 1))
			require.NoError(t, s.Close())
			require.NoError(t, c.change(s.path))
			before, err := os.ReadFile(s.path)
			require.NoError(t, err)
			for range 2 { // the second call shows that the first released the lock
				_, err := Open(t.Context(), Options{Dir: dir})
				require.ErrorContains(t, err, c.want)
				assert.ErrorContains(t, err, s.path)
				assert.Contains(t, Advice(err), c.advice)
			}
			after, err := os.ReadFile(s.path)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(before, after))
		})
	}
}

// A database that is damaged while it is in use is named in the status, with the remedy.
func TestDamageWhileInUse(t *testing.T) {
	s := openTest(t, Options{}, quick())
	for i := range 10 {
		s.SaveTurn(turn("c", i))
	}
	flush(t, s)
	_, err := s.write.Exec("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA shrink_memory")
	require.NoError(t, err)
	require.NoError(t, cut(3*4096)(s.path))
	s.SaveTurn(turn("d", 1))
	wait.Eventually(t, "the status says so", func() (any, bool) { return s.Status(), !s.Status().OK })
	assert.Contains(t, s.Status().Problem, "malformed")
	assert.Contains(t, s.Status().Problem, "keep a copy for recovery and restore a backup")
	require.ErrorContains(t, s.Close(), "malformed")
	assert.EqualValues(t, 1, s.LostTurns())
}

func TestRestoredFileIsUsedAgain(t *testing.T) {
	s := openTest(t, Options{}, quick())
	require.NoError(t, os.Rename(s.path, s.path+".away"))
	_, err := s.SaveEvent(t.Context(), api.Event{})
	require.ErrorIs(t, err, api.ErrUnavailable)
	assert.ErrorContains(t, err, "kvbooth.db was removed or replaced")
	s.SaveTurn(turn("c", 1))
	wait.Eventually(t, "the status says so", func() (any, bool) { return s.Status(), !s.Status().OK })
	require.NoError(t, os.Rename(s.path+".away", s.path))
	flush(t, s)
	assert.Equal(t, api.StoreStatus{Path: s.path, OK: true, StoredTurns: 1}, s.Status())
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
