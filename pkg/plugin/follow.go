package plugin

import (
	"net/http"
	"strings"

	"kvbooth/sidecar/api"
)

// follow forwards events as they arrive, to a caller that accepts events. It ends when the load generator or the
// reader stalls; the load generator reports its progress every other second.
func (a *App) follow(w http.ResponseWriter, r *http.Request, login string) error {
	if !api.WantsEvents(r) {
		return a.forward(w, r, login)
	}
	res, stall, err := a.endless(r, login)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	defer stall.Stop()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), api.EventStream) {
		return errUnexpected
	}
	begin(w, res)
	some := make([]byte, 32<<10)
	for {
		n, err := res.Body.Read(some)
		if n > 0 {
			stall.Reset(a.limits.stall)
			if _, failed := w.Write(some[:n]); failed != nil || http.NewResponseController(w).Flush() != nil {
				return nil // the reader has disconnected
			}
		}
		if err != nil {
			return nil // a reader that misses the end of the events requests them again
		}
	}
}
