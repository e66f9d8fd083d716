type Node = { readonly name: string; readonly requires: readonly string[] };

/**
 * The resources in the order in which they start: each level needs only what stands in the levels before it. Requirements
 * outside the list count as there already. Releases have no circle; what would stand in one comes last, together.
 */
export function levelsOf<T extends Node>(resources: readonly T[]): readonly (readonly T[])[] {
  const levels: T[][] = [];
  let left = resources;
  while (left.length > 0) {
    const names = new Set(left.map(({ name }) => name));
    const ready = left.filter(({ requires }) => !requires.some((name) => names.has(name)));
    const level = ready.length > 0 ? ready : [...left];
    levels.push(level);
    left = left.filter((resource) => !level.includes(resource));
  }
  return levels;
}
