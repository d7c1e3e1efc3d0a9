package plugin

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// slow returns a byte of a text after each pause.
type slow struct {
	text  *strings.Reader
	pause time.Duration
}

func (s slow) Read(b []byte) (int, error) {
	<-time.After(s.pause)
	return s.text.Read(b[:1])
}

// An export whose load generator sends a byte just before each stall would end it is complete, however long it takes.
func TestSlowExportIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &App{limits: limits{stall: 30 * time.Second}}
		ctx, cancel := context.WithCancel(t.Context())
		stall := time.AfterFunc(a.limits.stall, cancel)
		defer stall.Stop()
		text := strings.Repeat("1,2\r\n", 20)
		w := httptest.NewRecorder()
		assert.NoError(t, a.copyAlong(w, slow{strings.NewReader(text), 29 * time.Second}, stall))
		assert.NoError(t, ctx.Err(), "after 100 bytes in 48 minutes")
		assert.Equal(t, text, w.Body.String())
		assert.ErrorIs(t, a.copyAlong(w, io.MultiReader(strings.NewReader(text), cutOff{}), stall), io.ErrUnexpectedEOF)
	})
}

// cutOff is an answer that breaks off.
type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
