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

// answer is what a server said, and when.
type answer struct {
	code           int
	header         http.Header
	body           []byte
	sent, received time.Time // of the head
}

// get asks for a page; a token that is not empty goes with it.
func (e *exam) get(ctx context.Context, address, token string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
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

// read decodes an answer with the code 200.
func (a answer) read(into any) error {
	if a.code != http.StatusOK {
		return errors.New(a.says())
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return errors.New("its response is not valid JSON")
	}
	return nil
}

// says is the code and the beginning of what stands beside it.
func (a answer) says() string {
	const most = 200
	text := strings.Join(strings.Fields(string(a.body)), " ")
	if strings.HasPrefix(text, "<") { // a page for people
		text = ""
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strings.TrimSuffix(fmt.Sprintf("it returned %d %s: %s", a.code, http.StatusText(a.code), text), ": ")
}

// The differences between clocks, in seconds, that make dashboards lie, and that make them useless.
const (
	skewWarning = 2.0
	skewProblem = 30.0
)

// skew is by how many seconds another clock is ahead of this one at least, below 0 where it is
// behind: it showed a moment between from and to while this one went from sent to received.
func skew(from, to, sent, received time.Time) float64 {
	switch {
	case from.After(received):
		return from.Sub(received).Seconds()
	case to.Before(sent):
		return -sent.Sub(to).Seconds()
	}
	return 0
}

// date tells the clock by an answer's Date, which has whole seconds.
func (a answer) date(all *findings) {
	at, err := http.ParseTime(a.header.Get("Date"))
	if err != nil {
		all.skip("its clock: the response has no valid Date header", "")
		return
	}
	tellSkew(all, skew(at, at.Add(time.Second), a.sent, a.received))
}

func tellSkew(all *findings, ahead float64) {
	const do = "synchronise both clocks with NTP (chrony, systemd-timesyncd); otherwise times on dashboards do not match"
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
