import type { JsonObject } from '../kernel/json.js';
import type { Labels } from '../kernel/labels.js';
import type { PublicPrismaTypes } from '../store/public-types.js';
import type { Context } from './context.js';

/** What the builder's types are made from. */
export interface GraphTypes {
  Context: Context;
  PrismaTypes: PublicPrismaTypes;
  DefaultFieldNullability: false;
  Scalars: {
    /** Ids are TypeIDs on both sides; global ids are these very texts. */
    ID: { Input: string; Output: string };
    DateTime: { Input: Date; Output: Date };
    ChangeCursor: { Input: string; Output: string };
    JSONObject: { Input: JsonObject; Output: unknown };
    Labels: { Input: Labels; Output: unknown };
  };
}

/** The same with Pothos' defaults filled in: what its refs and builders are generic over. */
export type Types = PothosSchemaTypes.ExtendDefaultTypes<GraphTypes>;
export type Builder = PothosSchemaTypes.SchemaBuilder<Types>;
