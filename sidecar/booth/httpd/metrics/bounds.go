package metrics

// Upper bounds of the histograms in Dynamo 1.6.1, TensorRT-LLM and vLLM. Most of Dynamo's are log-linear and rounded
// to two digits.
var (
	firstTokenBounds = []float64{0, .0022, .0047, .01, .022, .047, .1, .22, .47, 1, 2.2, 4.7, 10, 22, 48, 100, 220, 480}
	interTokenBounds = []float64{
		0, .0018, .0033, .0059, .011, .02, .035, .064, .12, .21, .38, .69, 1.2, 2.3, 4.1, 7.4, 13, 24, 44, 80,
	}
	requestBounds       = []float64{0, 2, 4, 8, 16, 32, 64, 130, 260, 510}
	inputTokenBounds    = []float64{0, 100, 210, 430, 870, 1800, 3600, 7400, 15000, 31000, 63000, 130000}
	outputTokenBounds   = []float64{0, 100, 210, 430, 880, 1800, 3700, 7600, 16000, 32000}
	stageBounds         = []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 2.5, 5}
	roundTripBounds     = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	routerMeanITLBounds = []float64{0, .0019, .0035, .0067, .013, .024, .045, .084, .16, .3, .56, 1.1, 2}
	transferBounds      = []float64{0, .0019, .0037, .0072, .014, .027, .052, .1, .19, .37, .72, 1.4, 2.7, 5.2, 10}
	blocksLostBounds    = []float64{.25, .5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}
	beyondBlocksBounds  = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}
	workHandlerBounds   = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}

	engineRequestBounds = []float64{
		.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
	}
	engineFirstTokenBounds = []float64{
		.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}
	engineTokenBounds = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
)

// Upper bounds of the histograms in SGLang.
var (
	sglangRequestBounds = []float64{
		.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 1200, 1800, 2400,
	}
	sglangFirstTokenBounds = []float64{.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400}
	sglangTokenBounds      = []float64{
		.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06, .08, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8,
	}
	sglangQueueBounds = []float64{
		0, .001, .005, .01, .05, .1, .2, .5, 1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100,
		200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1600, 1800, 2000, 2500, 3000,
	}
)

// rateBounds are the 21 upper bounds of a share, from 0 to 1.
var rateBounds = func() []float64 {
	bounds := make([]float64, 21)
	for i := range bounds {
		bounds[i] = float64(i) * .05
	}
	return bounds
}()
