package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

const (
	defaultConversations = 50
	defaultEvents        = 100
	maxLimit             = 1000
)

// The error class of a conversation is that of its last turn.
const conversationColumns = `id, lane, number, topic, starter, status, turns_planned, turns_done, started, ended,
	CASE status WHEN 'error' THEN coalesce((SELECT json_extract(data, '$.error_class') FROM turns
		WHERE conversation = conversations.id ORDER BY number DESC LIMIT 1), '') ELSE '' END`

// figuresColumn selects the turns of a conversation in a list, as JSON of a []api.ConversationTurn.
const figuresColumn = `(SELECT json_group_array(json_object('ttft', data ->> 'ttft', 'worker', data ->> 'worker',
	'prompt_tokens', data ->> 'prompt_tokens', 'cached_tokens', data ->> 'cached_tokens') ORDER BY number)
	FROM turns WHERE conversation = conversations.id)`

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
	// one row beyond the limit shows whether there is a next page
	found, err := query(ctx, s.read, "listing conversations", scanRow,
		"SELECT "+conversationColumns+", "+figuresColumn+" FROM conversations WHERE "+where+
			" ORDER BY started DESC, id DESC LIMIT ?",
		append(args, limit+1)...)
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
// in order. The error is an [api.ErrNotFound] or [api.ErrUnavailable].
func (s *Store) Conversation(ctx context.Context, id string) (api.Conversation, error) {
	found, err := query(ctx, s.read, "reading a conversation", scanDetail,
		"SELECT "+conversationColumns+" FROM conversations WHERE id = ?", id)
	if err != nil {
		return api.Conversation{}, err
	}
	if len(found) == 0 {
		return api.Conversation{}, fmt.Errorf("%w: there is no conversation %q", api.ErrNotFound, id)
	}
	c := found[0]
	c.Turns, err = query(ctx, s.read, "reading turns", scanWholeTurn,
		"SELECT data, user_message, assistant_message FROM turns WHERE conversation = ? ORDER BY number", id)
	return c, err
}

// scanRow scans the columns of a list.
func scanRow(rows *sql.Rows) (c api.Conversation, err error) {
	var figures []byte
	if c, err = scanConversation(rows, &figures); err != nil {
		return c, err
	}
	err = json.Unmarshal(figures, &c.Figures)
	if len(c.Figures) == 0 {
		c.Figures = nil
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

func scanWholeTurn(rows *sql.Rows) (t api.Turn, err error) {
	var data []byte
	var user, assistant string
	if err = rows.Scan(&data, &user, &assistant); err == nil {
		err = json.Unmarshal(data, &t)
	}
	t.UserMessage, t.AssistantMessage = user, assistant
	return t, err
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
	return query(ctx, s.read, "reading steps", func(rows *sql.Rows) (r api.StepRecord, err error) {
		var data []byte
		var ended sql.NullInt64
		if err = rows.Scan(&data, &ended); err == nil {
			err = json.Unmarshal(data, &r)
		}
		r.Ended = timeAt(ended)
		return r, err
	}, "SELECT data, ended FROM steps WHERE lane = ? ORDER BY id", lane)
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
