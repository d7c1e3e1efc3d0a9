package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"

	"kvbooth/sidecar/api"
)

// incomplete is the last line of a truncated export, which Grafana forwards as if it were complete. A CSV reader fails
// on its one field.
const incomplete = "# INCOMPLETE: the export was interrupted here; download it again\r\n"

// piece is the number of bytes of an answer that are sent at once, and after which a reader has made progress.
const piece = 8 << 10

// tooMany is the error of an export beyond those that may run at once.
type tooMany struct{ most int }

func (e *tooMany) Error() string {
	return fmt.Sprintf("the maximum of %d concurrent raw-data downloads is reached; try again when one has finished",
		e.most)
}

// export forwards raw data of any length as it arrives. It ends when the load generator or the reader stalls.
func (a *App) export(w http.ResponseWriter, r *http.Request, login string) error {
	select {
	case a.exports <- struct{}{}:
		defer func() { <-a.exports }()
	default:
		return &tooMany{cap(a.exports)}
	}
	res, stall, err := a.endless(r, login, "text/csv")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	defer stall.Stop()
	begin(w, res)
	if err := a.copyAlong(w, res.Body, stall); err != nil && r.Context().Err() == nil {
		backend.Logger.FromContext(r.Context()).Warn("an export was interrupted", "path", r.URL.Path, "error", err)
		_, _ = io.WriteString(w, "\r\n"+incomplete)
		_ = http.NewResponseController(w).Flush() // a reader that does not read has disconnected
	}
	return nil
}

// copyAlong forwards an answer as it arrives, and resets stall with every read and every piece written: slow progress
// is progress. It returns the error of the answer; nil at its end, and where the reader has disconnected.
func (a *App) copyAlong(w http.ResponseWriter, answer io.Reader, stall *time.Timer) error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := answer.Read(buffer)
		for part := range slices.Chunk(buffer[:n], piece) {
			stall.Reset(a.limits.stall)
			if _, failed := w.Write(part); failed != nil || http.NewResponseController(w).Flush() != nil {
				return nil
			}
		}
		stall.Reset(a.limits.stall)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// endless makes a call whose answer of a type may have any length. It ends when stall, which begins with the call, is
// not reset in time.
func (a *App) endless(r *http.Request, login, contentType string) (res *http.Response, stall *time.Timer, err error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stall = time.AfterFunc(a.limits.stall, func() { cancel(errStalled) })
	res, err = a.client.WithoutTimeout().As(login).Forward(r.WithContext(ctx), http.NoBody)
	if err == nil && strings.HasPrefix(res.Header.Get("Content-Type"), contentType) {
		return res, stall, nil
	}
	stall.Stop()
	if err == nil {
		_ = res.Body.Close()
		err = errUnexpected
	}
	if errors.Is(context.Cause(ctx), errStalled) {
		err = context.DeadlineExceeded
	}
	cancel(nil)
	return nil, nil, err
}

var errStalled = errors.New("the download stalled: no data from the load generator, or the client stopped reading")

// follow forwards events as they arrive, to a caller that accepts events. It ends when the load generator or the
// reader stalls; the load generator reports its progress every other second.
func (a *App) follow(w http.ResponseWriter, r *http.Request, login string) error {
	if !api.WantsEvents(r) {
		return a.forward(w, r, login)
	}
	res, stall, err := a.endless(r, login, api.EventStream)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	defer stall.Stop()
	begin(w, res)
	_ = a.copyAlong(w, res.Body, stall) // a reader that misses the end of the events requests them again
	return nil
}
