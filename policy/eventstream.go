package policy

import "bytes"

const (
	dataField = "data"
	// doneData is the data by which streams of language models say that nothing more comes.
	doneData = "[DONE]"
	// byteOrderMark may stand before a stream of events.
	byteOrderMark = "\ufeff"
)

// An event is where a reading is in a stream of server-sent events (WHATWG HTML,
// "Interpreting an event stream").
type event struct {
	mark int // bytes of the byte order mark that were read
	line lineState
	cr   bool // a carriage return came last: a line feed belongs to it
	// named is how much of the field's name is that of data, done how much of all the
	// event's data is doneData; −1 where it is something else.
	named, done int
	data        bool // the event has some
}

type lineState uint8

const (
	inName  lineState = iota // of a field, or at the beginning of a line
	atSpace                  // behind data's colon
	inData
	inOther // in a field or comment that is nothing to us
)

// readEvents reads on in a stream of events.
func (r *reading) readEvents(text []byte) {
	e := &r.event
	for len(text) > 0 && !r.over {
		c := text[0]
		switch {
		case e.mark < len(byteOrderMark) && c == byteOrderMark[e.mark]:
			e.mark++
			text = text[1:]
			continue
		case e.cr && c == '\n':
			e.cr = false
			text = text[1:]
			continue
		}
		if 0 < e.mark && e.mark < len(byteOrderMark) {
			e.line = inOther // it was none after all
		}
		e.mark, e.cr = len(byteOrderMark), false
		part := text[:1]
		switch {
		case c == '\r' || c == '\n':
			e.cr = c == '\r'
			r.endLine()
		case e.line == inName:
			r.name(c)
		case e.line == atSpace && c == ' ':
			e.line = inData
		default:
			part = untilEOL(text)
			if e.line != inOther {
				e.line = inData
				r.eventData(part)
			}
		}
		text = text[len(part):]
	}
}

// untilEOL is the text as far as its first line goes. It looks no further, so that
// many short lines that end in one way alone cost what they are long.
func untilEOL(text []byte) []byte {
	if at := bytes.IndexAny(text, "\r\n"); at >= 0 {
		text = text[:at]
	}
	return text
}

// name reads a byte of a field's name.
func (r *reading) name(c byte) {
	switch e := &r.event; {
	case e.named < len(dataField) && c == dataField[e.named]:
		e.named++
	case c == ':' && e.named == len(dataField):
		r.beginData()
	default:
		e.line = inOther
	}
}

// beginData begins a line of data: the event's lines are joined by line feeds.
func (r *reading) beginData() {
	e := &r.event
	if e.line, e.done = atSpace, 0; e.data {
		r.scan.read([]byte("\n"))
		e.done = -1
	}
	e.data = true
}

func (r *reading) eventData(part []byte) {
	r.scan.read(part)
	e := &r.event
	for i := 0; i < len(part) && e.done >= 0; i++ {
		if e.done < len(doneData) && part[i] == doneData[e.done] {
			e.done++
		} else {
			e.done = -1
		}
	}
}

func (r *reading) endLine() {
	e := &r.event
	switch {
	case e.line == inName && e.named == 0: // an empty line ends the event
		r.next()
		e.data = false
	case e.line == inName && e.named == len(dataField):
		r.beginData() // without a colon: an empty line of data
	}
	r.over = (e.line == inData || e.line == atSpace) && e.done == len(doneData)
	e.line, e.named = inName, 0
}
