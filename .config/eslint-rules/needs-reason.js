/**
 * `x!` and `x as T` switch the compiler off for one expression, so they say why that is sound: a
 * comment on one of the expression's lines or on the line above it. `as const` only narrows and is free.
 *
 * A directive comment (`eslint-disable…`, `@ts-…`, `prettier-ignore`) is not a reason.
 */
const DIRECTIVE = /^\s*(eslint|@ts-|prettier-ignore|v8 |c8 |istanbul|#)/;
// Two words at least: `// ok` explains nothing.
const REASON = /\p{L}{2,}.*\s.*\p{L}{2,}/su;

/** @type {import('eslint').Rule.RuleModule} */
export const needsReason = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      assertion:
        '`{{what}}` needs its reason: add `// why this always holds` on this line or the line above, or narrow with a check.',
    },
  },
  create(context) {
    const { sourceCode } = context;
    const explainedLines = new Set();
    for (const comment of sourceCode.getAllComments()) {
      if (DIRECTIVE.test(comment.value) || !REASON.test(comment.value)) continue;
      const { start, end } = comment.loc;
      for (let line = start.line; line <= end.line; line += 1) explainedLines.add(line);
      // A comment behind code speaks for that code, not for the next line.
      const standsAlone = sourceCode.lines[start.line - 1].slice(0, start.column).trim() === '';
      if (standsAlone) explainedLines.add(end.line + 1);
    }

    function check(node, what) {
      const annotation = node.typeAnnotation ?? node;
      const lines = [node.loc.start.line, annotation.loc.start.line, annotation.loc.end.line];
      if (lines.some((line) => explainedLines.has(line))) return;
      context.report({ node, messageId: 'assertion', data: { what } });
    }

    function assertion(node) {
      const { typeAnnotation } = node;
      if (typeAnnotation.type === 'TSTypeReference' && typeAnnotation.typeName.name === 'const') return;
      // `a as unknown as T` is one assertion; the outer one speaks for both.
      if (node.parent.type === 'TSAsExpression') return;
      check(node, `as ${sourceCode.getText(typeAnnotation)}`);
    }

    return {
      TSAsExpression: assertion,
      TSTypeAssertion: assertion,
      TSNonNullExpression: (node) => check(node, '!'),
    };
  },
};
