import {
  Kind,
  type DocumentNode,
  type FragmentDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';

import { DIRECTIVES_PER_NODE_MAX, type TransportLimits } from './limits.js';

/**
 * What a document would cost before it is even validated: validation itself is more than linear in some of these.
 * One pass, each fragment measured once, so that fragments which spread each other twice cannot make the measuring
 * exponential. Cycles are left to validation. One walk for all transports, and it returns instead of throwing: a
 * validation rule that throws (as the published rule packages do) would close a whole socket on the stock server.
 */
export type DocumentExcess = 'deep' | 'aliases' | 'directives' | 'repeats';

interface Size {
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  /** A node or selection set that is out of bounds whatever surrounds it. */
  readonly excess: DocumentExcess | undefined;
}
const NOTHING: Size = { depth: 0, aliases: 0, directives: 0, excess: undefined };

type Bounds = Pick<
  TransportLimits,
  'documentDepth' | 'documentAliases' | 'documentDirectives' | 'fieldRepeats'
>;

export function documentExcess(document: DocumentNode, bounds: Bounds): DocumentExcess | undefined {
  const measure = measurer(document, bounds);
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const inner = measure(definition.selectionSet);
    const directives = inner.directives + (definition.directives?.length ?? 0);
    if (inner.excess) return inner.excess;
    if (inner.depth > bounds.documentDepth) return 'deep';
    if (inner.aliases > bounds.documentAliases) return 'aliases';
    if (directives > bounds.documentDirectives) return 'directives';
    if ((definition.directives?.length ?? 0) > DIRECTIVES_PER_NODE_MAX) return 'directives';
  }
  return undefined;
}

function measurer(document: DocumentNode, bounds: Bounds): (set: SelectionSetNode) => Size {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const measured = new Map<string, Size | 'running'>();

  function ofFragment(name: string): Size {
    const known = measured.get(name);
    if (known !== undefined) return known === 'running' ? NOTHING : known;
    const fragment = fragments.get(name);
    if (fragment === undefined) return NOTHING; // validation says so
    measured.set(name, 'running');
    const size = ofSet(fragment.selectionSet);
    measured.set(name, size);
    return size;
  }

  function ofSelection(selection: SelectionNode): Size {
    if (selection.kind === Kind.FRAGMENT_SPREAD) return ofFragment(selection.name.value);
    if (selection.kind === Kind.INLINE_FRAGMENT) return ofSet(selection.selectionSet);
    const inner = selection.selectionSet ? ofSet(selection.selectionSet) : NOTHING;
    // Introspection is deep by nature: nested `ofType`, harmless, since each step yields one type.
    const introspection = selection.name.value === '__schema' || selection.name.value === '__type';
    return {
      depth: introspection ? 1 : inner.depth + 1,
      aliases: inner.aliases + (selection.alias ? 1 : 0),
      directives: inner.directives,
      excess: inner.excess,
    };
  }

  function ofSet(set: SelectionSetNode): Size {
    let depth = 0;
    let aliases = 0;
    let directives = 0;
    let excess: DocumentExcess | undefined;
    const keys = new Map<string, number>();
    for (const selection of set.selections) {
      const size = ofSelection(selection);
      const own = selection.directives?.length ?? 0;
      depth = Math.max(depth, size.depth);
      aliases += size.aliases;
      directives += size.directives + own;
      excess ??= size.excess ?? (own > DIRECTIVES_PER_NODE_MAX ? 'directives' : undefined);
      if (selection.kind === Kind.INLINE_FRAGMENT) continue;
      // Spreads count like fields: repeating one repeats all that it selects.
      const key =
        selection.kind === Kind.FIELD
          ? (selection.alias ?? selection.name).value
          : `...${selection.name.value}`;
      const seen = (keys.get(key) ?? 0) + 1;
      keys.set(key, seen);
      if (seen > bounds.fieldRepeats) excess ??= 'repeats';
    }
    return { depth, aliases, directives, excess };
  }
  return ofSet;
}
