package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"kvbooth/sidecar/api"
)

const (
	defaultConversations = 50
	defaultEvents        = 100
	maxLimit             = 1000
)

const (
	conversationColumns = "id, lane, number, topic, starter, status, turns_planned, turns_done, started, ended"

	// errorClassColumn selects the error class of a conversation, which is that of its last turn.
	errorClassColumn = `CASE status WHEN 'error' THEN coalesce((SELECT (` + validData + `) ->> 'error_class' FROM turns
		WHERE conversation = conversations.id ORDER BY number DESC LIMIT 1), '') ELSE '' END`

	// figuresColumn selects the turns of a conversation in a list, as JSON of a []listedTurn.
	figuresColumn = `(SELECT json_group_array(json_object('ttft', data ->> 'ttft', 'worker', data ->> 'worker',
		'prompt_tokens', data ->> 'prompt_tokens', 'cached_tokens', data ->> 'cached_tokens', 'damaged', damaged)
		ORDER BY number)
		FROM (SELECT number, ` + validData + ` AS data, iif(json_valid(data), 0, seq) AS damaged FROM turns
			WHERE conversation = conversations.id))`
)

// listedTurn is a turn of a conversation in a list.
type listedTurn struct {
	api.ConversationTurn
	Damaged int64 `json:"damaged"` // its position; 0: it is whole
}

// Conversations lists conversations, newest first. The topic matches anywhere in
// a conversation's topic, regardless of case. The limit is 1 to 1,000, 0 means 50.
// An invalid limit, status or cursor gives an [api.FieldError]; a failure to read
// the file gives an [api.ErrUnavailable].
func (s *Store) Conversations(ctx context.Context, q api.ConversationQuery) (api.ConversationList, error) {
	none := api.ConversationList{}
	limit, err := checkLimit(q.Limit, defaultConversations)
	if err != nil {
		return none, err
	}
	where, args, err := conditions(q)
	if err != nil {
		return none, err
	}
	rest := " FROM conversations WHERE " + where + " ORDER BY started DESC, id DESC LIMIT ?"
	args = append(args, limit+1) // one row beyond the limit shows whether there is a next page
	found, err := query(ctx, s.read, "listing conversations", s.scanRow,
		"SELECT "+conversationColumns+", "+errorClassColumn+", "+figuresColumn+rest, args...)
	if damaged(err) { // the turns; they are left out
		s.noteDamage("turns", "of conversations")
		found, err = query(ctx, s.read, "listing conversations", s.scanRow,
			"SELECT "+conversationColumns+", '', '[]'"+rest, args...)
	}
	if damaged(err) {
		s.noteDamage("conversations", "in a list")
	}
	if err != nil {
		return none, err
	}
	list := api.ConversationList{Conversations: found}
	if len(found) > limit {
		list.Conversations = found[:limit]
		list.NextCursor = cursorAfter(found[limit-1])
	}
	return list, nil
}

// conditions turns a query into SQL. A condition that selects all rows is left out,
// so that the index of the others is used.
func conditions(q api.ConversationQuery) (where string, args []any, err error) {
	var parts []string
	add := func(part string, values ...any) {
		parts = append(parts, part)
		args = append(args, values...)
	}
	if q.Status != "" {
		if err := api.OneOf("status", q.Status, api.ConversationStatuses); err != nil {
			return "", nil, err
		}
		add("status = ?", q.Status)
	}
	if q.Lane != "" {
		add("lane = ?", q.Lane)
	}
	if q.Topic != "" {
		add("instr(topic_folded, ?) > 0", strings.ToLower(q.Topic))
	}
	if q.From != 0 {
		add("(ended IS NULL OR ended >= ?)", time.UnixMilli(q.From).UnixNano())
	}
	if q.To != 0 {
		add("started <= ?", time.UnixMilli(q.To).UnixNano())
	}
	if q.Cursor != "" {
		started, id, err := parseCursor(q.Cursor)
		if err != nil {
			return "", nil, err
		}
		add("(started, id) < (?, ?)", started, id)
	}
	if parts == nil {
		return "true", nil, nil
	}
	return strings.Join(parts, " AND "), args, nil
}

// cursorAfter encodes the last conversation of a page.
func cursorAfter(c api.Conversation) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d:%s", c.Started.UnixNano(), c.ID))
}

func parseCursor(cursor string) (started int64, id string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		var number string
		number, id, _ = strings.Cut(string(text), ":")
		started, err = strconv.ParseInt(number, 10, 64)
	}
	if err != nil || id == "" {
		return 0, "", api.Refuse("cursor", strconv.Quote(cursor), "the next_cursor of an earlier answer, unchanged")
	}
	return started, id, nil
}

func checkLimit(limit, fallback int) (int, error) {
	if limit == 0 {
		return fallback, nil
	}
	if limit < 0 || limit > maxLimit {
		return 0, api.Refuse("limit", limit, fmt.Sprintf("a whole number from 1 to %d", maxLimit))
	}
	return limit, nil
}

// Conversation returns one conversation with its stored turns and their messages,
// in order. Damaged turns are left out; [Store.Status] names them. The error is an
// [api.ErrNotFound] or [api.ErrUnavailable].
func (s *Store) Conversation(ctx context.Context, id string) (api.Conversation, error) {
	found, err := query(ctx, s.read, "reading a conversation", scanDetail,
		"SELECT "+conversationColumns+", "+errorClassColumn+" FROM conversations WHERE id = ?", id)
	if damaged(err) {
		found, err = query(ctx, s.read, "reading a conversation", scanDetail,
			"SELECT "+conversationColumns+", '' FROM conversations WHERE id = ?", id)
	}
	if err != nil {
		return api.Conversation{}, err
	}
	if len(found) == 0 {
		return api.Conversation{}, fmt.Errorf("%w: there is no conversation %q", api.ErrNotFound, id)
	}
	c := found[0]
	c.Turns, err = readable(ctx, s, "turns", scanWholeTurn, "SELECT seq, data, user_message, assistant_message "+
		"FROM turns WHERE conversation = ? ORDER BY number", id)
	return c, err
}

// scanRow scans the columns of a list.
func (s *Store) scanRow(rows *sql.Rows) (c api.Conversation, err error) {
	var figures []byte
	if c, err = scanConversation(rows, &figures); err != nil {
		return c, err
	}
	var turns []listedTurn
	err = json.Unmarshal(figures, &turns)
	for _, t := range turns {
		if t.Damaged != 0 {
			s.noteDamage("turns", strconv.FormatInt(t.Damaged, 10))
		}
		c.Figures = append(c.Figures, t.ConversationTurn)
	}
	return c, err
}

func scanDetail(rows *sql.Rows) (api.Conversation, error) { return scanConversation(rows) }

// scanConversation scans the columns of a conversation, and further columns into more.
func scanConversation(rows *sql.Rows, more ...any) (c api.Conversation, err error) {
	var started, ended sql.NullInt64
	err = rows.Scan(append([]any{
		&c.ID, &c.Lane, &c.Number, &c.Topic, &c.Starter, &c.Status, &c.TurnsPlanned, &c.TurnsDone, &started, &ended,
		&c.ErrorClass,
	}, more...)...)
	if err == nil {
		c.Started, c.Ended = *timeAt(started), timeAt(ended)
	}
	return c, err
}

func scanWholeTurn(rows *sql.Rows) (name string, t api.Turn, err error) {
	var data []byte
	var user, assistant string
	if err = rows.Scan(&name, &data, &user, &assistant); err == nil {
		err = decode(data, &t)
	}
	t.UserMessage, t.AssistantMessage = user, assistant
	return name, t, err
}

// Events lists the newest events, newest first: those of a lane and those that
// concern all lanes, or all for the empty lane. The limit is 1 to 1,000; 0 means
// 100; another value gives an [api.FieldError]. The slice is never nil.
func (s *Store) Events(ctx context.Context, lane string, limit int) ([]api.Event, error) {
	limit, err := checkLimit(limit, defaultEvents)
	if err != nil {
		return nil, err
	}
	return query(ctx, s.read, "reading events", func(rows *sql.Rows) (e api.Event, err error) {
		var at sql.NullInt64
		if err = rows.Scan(&e.ID, &at, &e.Lane, &e.Kind, &e.By, &e.Text); err == nil {
			e.Time = *timeAt(at)
		}
		return e, err
	}, `SELECT id, time, lane, kind, by, text FROM events
		WHERE ? = '' OR lane IN ('', ?) ORDER BY id DESC LIMIT ?`, lane, lane, limit)
}

// Steps lists a lane's steps by id. The slice is never nil.
func (s *Store) Steps(ctx context.Context, lane string) ([]api.StepRecord, error) {
	return readable(ctx, s, "steps", func(rows *sql.Rows) (name string, r api.StepRecord, err error) {
		var data []byte
		var ended sql.NullInt64
		if err = rows.Scan(&name, &data, &ended); err == nil {
			err = decode(data, &r)
		}
		r.Ended = timeAt(ended)
		return name, r, err
	}, "SELECT seq, data, ended FROM steps WHERE lane = ? ORDER BY id", lane)
}

// MaxStep returns the highest step id that a lane has used, 0 if none. The next
// step after a restart follows it.
func (s *Store) MaxStep(ctx context.Context, lane string) (int64, error) {
	var id int64
	err := s.read.QueryRowContext(ctx, `SELECT max(coalesce((SELECT max(id) FROM steps WHERE lane = ?), 0),
		coalesce((SELECT max(step) FROM turns WHERE lane = ?), 0))`, lane, lane).Scan(&id)
	return id, unavailable("reading the last step", err)
}

// query reads all rows of a statement. The slice is not nil unless there is an error.
func query[T any](ctx context.Context, db *sql.DB, doing string, scan func(*sql.Rows) (T, error), text string,
	args ...any,
) ([]T, error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, unavailable(doing, err)
	}
	defer rows.Close()
	list := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, unavailable(doing, err)
		}
		list = append(list, v)
	}
	if err := rows.Err(); err != nil {
		return nil, unavailable(doing, err)
	}
	return list, nil
}

// errRecord reports a record whose data is damaged.
var errRecord = errors.New("the record is damaged")

// decode is json.Unmarshal of present or earlier names, with an errRecord.
func decode(data []byte, v any) error {
	if err := json.Unmarshal(api.PresentNames(data), v); err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	return nil
}

// readable is query for records of a kind, with their names. It leaves out damaged records, which [Store.Status] names.
func readable[T any](ctx context.Context, s *Store, kind string,
	scan func(*sql.Rows) (name string, v T, err error), text string, args ...any,
) ([]T, error) {
	list := []T{}
	_, err := query(ctx, s.read, "reading "+kind, func(rows *sql.Rows) (none struct{}, err error) {
		name, v, err := scan(rows)
		switch {
		case errors.Is(err, errRecord):
			s.noteDamage(kind, name)
			return none, nil
		case err == nil:
			list = append(list, v)
		}
		return none, err
	}, text, args...)
	if codeOf(err) == sqlite3.SQLITE_CORRUPT { // what follows cannot be read
		s.noteDamage(kind, fmt.Sprint("after ", len(list), " of ", args))
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}
