package config

// The words about what clients may, those of a limit aside that are numbers.

var costWords = []word{
	{name: "header", doc: "A header of the request that says what it costs.", shape: aText},
	{name: "default", doc: "The cost where no header says one that is believed. Default: 1.", shape: aNumber(1, maxCost)},
	{name: "estimate", doc: "What a request is charged until its answer tells what it cost.", shape: object(estimateWords, "default")},
	{name: "from", doc: "With header, the proxies that are believed; with estimate, where the answer tells.",
		shape: either(oneOrList(aText), exactlyOne(object(fromWords), "response_json", "response_header"))},
	{name: "refund", doc: "Give all of it back where the upstream fails. Default: not.", shape: oneOf("upstream_failure")},
}

var estimateWords = []word{
	{name: "request_json", doc: "A number's place in the request's JSON body, such as max_tokens.", shape: matching(placePattern)},
	{name: "default", doc: "What a request is charged that does not say.", shape: aNumber(1, maxCost)},
}

var fromWords = []word{
	{name: "response_json", doc: "A number's place in the answer's JSON or server-sent events, such as usage.total_tokens.", shape: matching(placePattern)},
	{name: "response_header", doc: "A header of the answer.", shape: aText},
}

// costShape is a number, numbers by pattern, or words.
var costShape = either(aNumber(1, maxCost),
	object(only(costWords, "header", "from", "default"), "header", "from"),
	object(only(costWords, "estimate", "from", "refund"), "estimate", "from"),
	mapOf(aNumber(0, maxCost)))

var failureWords = []word{
	{name: "status", doc: "The statuses of answers that are failures, from 100 to 599, or hundreds of them: 4xx.",
		shape: oneOrList(either(aNumber(100, 599), matching(classPattern)))},
}

var onLimitWords = []word{
	{name: "status", doc: "The status of what is refused, from 400 to 599. Default: 429.", shape: aNumber(400, 599)},
}

var warnAtWords = []word{
	{name: "at", doc: "How much of the limit is used then, in percent.", shape: matching(percentPattern)},
	{name: "header", doc: "A response header that says so too.", shape: aText},
}

var marksWords = []word{
	{name: "header", doc: "The header that tells the upstream. Default: Comporta-Mark.", shape: aText},
	{name: "secret_file", doc: "The key that it is signed with; made once where it does not exist. Default: marks.secret, beside the other secret.", shape: aText},
}

var overrideWords = []word{
	{name: "who", doc: "The client.", shape: whoShape},
	{name: "limits", doc: "Its numbers, by the limits' names.", shape: mapOf(aText)},
	{name: "through", doc: "The last day on which it holds, in the file's time zone. Default: for ever.", shape: matching(dayPattern)},
	{name: "reason", doc: "Why, for whoever reads the policy and the log.", shape: aText},
}
