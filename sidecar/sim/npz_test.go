package sim

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// array is a float64 array of an NPZ archive.
type array struct {
	shape  []int
	values []float64
}

var npyHeader = regexp.MustCompile(`^\{'descr': '<f8', 'fortran_order': False, 'shape': \(([\d,]+)\), \} *\n$`)

// parseNPY reads version 1.0 of NumPy's format, float64 only.
func parseNPY(t *testing.T, data []byte) array {
	t.Helper()
	require.Equal(t, "\x93NUMPY\x01\x00", string(data[:8]))
	begin := 10 + int(binary.LittleEndian.Uint16(data[8:]))
	assert.Zero(t, begin%64, "the data are aligned")
	match := npyHeader.FindStringSubmatch(string(data[10:begin]))
	require.NotNil(t, match, "header %q", data[10:begin])

	var a array
	size := 1
	for dim := range strings.SplitSeq(strings.TrimSuffix(match[1], ","), ",") {
		n, err := strconv.Atoi(dim)
		require.NoError(t, err)
		a.shape = append(a.shape, n)
		size *= n
	}
	require.Len(t, data[begin:], 8*size)
	for data = data[begin:]; len(data) > 0; data = data[8:] {
		a.values = append(a.values, math.Float64frombits(binary.LittleEndian.Uint64(data)))
	}
	return a
}

func readNPZ(t *testing.T, data []byte) map[string]array {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	arrays := map[string]array{}
	for _, file := range archive.File {
		entry, err := file.Open()
		require.NoError(t, err)
		content, err := io.ReadAll(entry)
		require.NoError(t, err)
		arrays[strings.TrimSuffix(file.Name, ".npy")] = parseNPY(t, content)
	}
	return arrays
}

func npz(t *testing.T, p Profile) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, WriteNPZ(&out, p))
	return out.Bytes()
}

func TestWriteNPZGrids(t *testing.T) {
	p := timed()
	arrays := readNPZ(t, npz(t, p))
	require.Len(t, arrays, 5)
	assert.Equal(t, npz(t, p), npz(t, p), "equal profiles give equal files")

	kv, contexts, itl := arrays["decode_active_kv_tokens"], arrays["decode_context_length"], arrays["decode_itl"]
	assert.Equal(t, []int{gridPoints, gridPoints}, itl.shape)
	for _, axis := range []array{kv, contexts, arrays["prefill_isl"]} {
		for i := 1; i < len(axis.values); i++ {
			require.Greater(t, axis.values[i], axis.values[i-1], "Dynamo requires strictly ascending axes")
		}
	}
	assert.Equal(t, float64(355_808), kv.values[gridPoints-1], "the grid reaches a full cache")

	isl, ttft := arrays["prefill_isl"].values, arrays["prefill_ttft_ms"].values
	slope := (ttft[1] - ttft[0]) / (isl[1] - isl[0])
	assert.InDelta(t, 41+0.118*3700, ttft[0]+slope*3700, 1e-9, "prefill of a whole opening")

	for _, test := range []struct {
		intent    string
		sequences int
		context   float64
		want      float64
	}{
		{"1 conversation", 1, 5000, (41 + 0.5 + 3.5e-5*5000) / p.TokensPerStep()},
		{"60 conversations on 3 workers", 20, 5500, (41 + 10 + 3.5e-5*110_000) / p.TokensPerStep()},
		{"120 conversations: within the floor's range", 40, 5500, 92 / p.TokensPerStep()},
		{"180 conversations: within the floor's range", 60, 5000, 92 / p.TokensPerStep()},
	} {
		tokens := float64(test.sequences) * test.context
		got := interpolate(itl.values, kv.values, contexts.values, tokens, test.context)
		assert.InEpsilon(t, test.want, got, 0.02, test.intent)
	}
}

// interpolate evaluates the grid as Dynamo does: bilinear, x along the rows.
func interpolate(z, xs, ys []float64, x, y float64) float64 {
	i, fx := cell(xs, x)
	j, fy := cell(ys, y)
	at := func(i, j int) float64 { return z[i*len(ys)+j] }
	return (1-fx)*((1-fy)*at(i, j)+fy*at(i, j+1)) + fx*((1-fy)*at(i+1, j)+fy*at(i+1, j+1))
}

func cell(axis []float64, v float64) (int, float64) {
	i := 0
	for i < len(axis)-2 && axis[i+1] <= v {
		i++
	}
	return i, (v - axis[i]) / (axis[i+1] - axis[i])
}

func TestDecodeAppliesFloor(t *testing.T) {
	step := timed().Step
	for _, test := range []struct {
		intent    string
		sequences int
		context   float64
		want      float64
	}{
		{"below the floor's range", 32, 176_000, 41 + 16 + 3.5e-5*176_000},
		{"first of the range", 33, 176_000, 92},
		{"last of the range", 63, 300_000, 92},
		{"beyond it", 64, 320_000, 41 + 32 + 3.5e-5*320_000},
	} {
		assert.InDelta(t, test.want, step.Decode(test.sequences, test.context), 1e-9, test.intent)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteNPZReportsFailedWrite(t *testing.T) {
	assert.ErrorIs(t, WriteNPZ(failingWriter{}, H200()), io.ErrClosedPipe)
}
