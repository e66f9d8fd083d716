import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EVENT_MAX_CHARACTERS, sseParser } from '../../../src/client/sse-parser.js';

describe('sseParser', () => {
  it('reads events with ids, and drops comments and unknown fields', () => {
    const parse = sseParser();
    expect(
      parse(':\n\nevent: next\nid: c1\ndata: {"a":1}\nretry: 5\nfoo: bar\n\nevent: complete\ndata:\n\n'),
    ).toEqual([
      { event: 'next', data: '{"a":1}', id: 'c1' },
      { event: 'complete', data: '', id: null },
    ]);
  });

  it('joins several data lines and keeps all but one leading space', () => {
    expect(sseParser()('data: a\ndata:  b\ndata\n\n')).toEqual([
      { event: 'message', data: 'a\n b\n', id: null },
    ]);
  });

  it('gives the same events wherever the text is cut, for each kind of line end', () => {
    const end = fc.constantFrom('\n', '\r\n', '\r');
    const event = fc.record({
      id: fc.string({ unit: fc.constantFrom('a', '1', ':') }),
      data: fc.string({ unit: fc.constantFrom('x', ' ', '{', 'ä') }),
    });
    fc.assert(
      fc.property(
        end,
        fc.array(event, { maxLength: 5 }),
        fc.array(fc.nat({ max: 20 }), { maxLength: 40 }),
        (eol, events, cuts) => {
          const text =
            events
              .map(({ id, data }) => `event: next${eol}id: ${id}${eol}data: ${data}${eol}${eol}`)
              .join('') + ':';
          const parse = sseParser();
          const got = [];
          let at = 0;
          for (const cut of cuts) {
            got.push(...parse(text.slice(at, at + cut)));
            at += cut;
          }
          got.push(...parse(text.slice(at)));
          expect(got).toEqual(events.map(({ id, data }) => ({ event: 'next', data, id })));
        },
      ),
    );
  });

  it('refuses an event without end', () => {
    const parse = sseParser();
    const chunk = 'x'.repeat(EVENT_MAX_CHARACTERS / 2);
    parse(`data: ${chunk}`);
    expect(() => parse(chunk)).toThrow(RangeError);
  });
});
