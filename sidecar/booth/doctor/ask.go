package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

const maxAnswer = 16 << 20 // bytes

// answer is a server's response with the times of its head.
type answer struct {
	code           int
	header         http.Header
	body           []byte
	sent, received time.Time // time of the request, and of the response's head
}

// get requests a page, with a token if it is not empty.
func (e *exam) get(ctx context.Context, address, token string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return answer{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return ask(e.http, req)
}

func ask(client *http.Client, req *http.Request) (answer, error) {
	a := answer{sent: time.Now()}
	res, err := client.Do(req)
	if err != nil {
		return a, api.Reason(err)
	}
	defer res.Body.Close()
	a.received, a.code, a.header = time.Now(), res.StatusCode, res.Header
	a.body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return a, api.Reason(err)
}

// read decodes an answer with status 200.
func (a answer) read(into any) error {
	if a.code != http.StatusOK {
		return errors.New(a.describe())
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return errors.New("its response is not valid JSON")
	}
	return nil
}

// describe describes the answer by its status and the beginning of its body.
func (a answer) describe() string {
	const most = 200
	text := strings.Join(strings.Fields(string(a.body)), " ")
	if strings.HasPrefix(text, "<") { // an HTML page
		text = ""
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strings.TrimSuffix(fmt.Sprintf("it returned %d %s: %s", a.code, http.StatusText(a.code), text), ": ")
}

// Clock differences, in seconds, from which dashboards are misleading, and from which they are unusable.
const (
	skewWarning = 2.0
	skewProblem = 30.0
)

// skew returns the least number of seconds by which another clock is ahead of this one, negative if it is behind. The
// other clock showed a moment between from and to while this one went from sent to received.
func skew(from, to, sent, received time.Time) float64 {
	switch {
	case from.After(received):
		return from.Sub(received).Seconds()
	case to.Before(sent):
		return -sent.Sub(to).Seconds()
	}
	return 0
}

// date compares the clock of the server by the Date header, which has whole seconds.
func (a answer) date(all *findings) {
	at, err := http.ParseTime(a.header.Get("Date"))
	if err != nil {
		all.skip("its clock: the response has no valid Date header", "")
		return
	}
	reportSkew(all, skew(at, at.Add(time.Second), a.sent, a.received))
}

func reportSkew(all *findings, ahead float64) {
	const do = "synchronize both clocks with NTP (chrony, systemd-timesyncd); " +
		"otherwise times on dashboards do not match"
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	text := fmt.Sprintf("its clock is at least %.0f s %s this machine's", math.Floor(math.Abs(ahead)), direction)
	switch by := math.Abs(ahead); {
	case by > skewProblem:
		all.problem(text, do)
	case by > skewWarning:
		all.warn(text, do)
	default:
		all.ok("its clock matches this machine's")
	}
}
