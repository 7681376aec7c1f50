-- The stored answers of an operation that is known, or, as the only element and after a "=", which field of it differs
-- this time. A line is found again by its account, also if that was of a window that is over by now.
CREATE OR REPLACE FUNCTION :"schema".replay(
  home smallint, owner uuid, id uuid, operation_id text, lines integer[], kinds smallint[],
  buckets smallint[], bases uuid[], amounts bigint[], flags integer[], notes text[], refs text[]
) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  answers text[];
  field text;
  stored record;
  seen integer := 0;
BEGIN
  FOR stored IN
    -- Of what was applied, "refusal" is what was asked for, if it was more.
    SELECT o.kind, CASE WHEN o.seq IS NULL THEN o.amount ELSE coalesce(o.refusal::bigint, o.amount) END AS amount,
      o.ref, o.seq IS NULL AS refused, o.seq IS NOT NULL AND o.refusal IS NOT NULL AS took_less, x.ord, v.operation_id, v.note,
      concat_ws(',', CASE WHEN o.seq IS NULL THEN 10 ELSE 1 END, coalesce(v.seq, 0),
        coalesce(v.credited, 0), coalesce(v.debited, 0), coalesce(v.held, 0),
        coalesce(v.allowance, 0), micros(o.at),
        CASE WHEN o.seq IS NULL THEN o.refusal WHEN o.refusal IS NOT NULL THEN o.amount::text END,
        micros(h.expires_at)) AS answer
    FROM operation o
    LEFT JOIN LATERAL (
      -- Of two lines for one account, the one that was written as this one.
      SELECT u.ord, u.bucket
      FROM unnest(bases, buckets) WITH ORDINALITY AS u(base, bucket, ord)
      LEFT JOIN account a ON a.bucket = u.bucket AND a.id = o.account
      WHERE u.base = o.account OR window_account(u.base, a.window_start) = o.account
      ORDER BY u.ord = o.line + 1 DESC, u.ord
      LIMIT 1
    ) x ON true
    -- What went back to a grant that had lapsed is a second movement of the same operation.
    LEFT JOIN LATERAL (
      SELECT v.* FROM movement v
      WHERE v.bucket = x.bucket AND v.account = o.account AND v.at = o.at
        AND v.seq BETWEEN o.seq AND o.seq + 1
        AND (v.seq = o.seq OR v.seq = o.seq + 1 AND v.kind = 9 AND v.operation_id = operation_id
          -- And not that it expired at the same moment, which a clock that went back can show.
          AND v.grant_id IS NULL)
      ORDER BY v.seq DESC
      LIMIT 1
    ) v ON true
    LEFT JOIN hold h ON o.kind = 3 AND h.bucket = x.bucket AND h.account = o.account
      AND h.id = hash_name(concat(owner, ':', id))
    WHERE o.bucket = home AND o.owner = owner AND o.id = id
    ORDER BY o.line
  LOOP
    seen := seen + 1;
    field := CASE
      WHEN stored.operation_id <> operation_id THEN 'operationId'
      WHEN stored.ord IS NULL THEN CASE WHEN cardinality(lines) = 1 THEN 'key' ELSE 'lines' END
      -- Transfers of stock were debits and credits once.
      WHEN stored.kind <> kinds[stored.ord] AND (stored.kind, kinds[stored.ord]) NOT IN ((2, 15), (1, 16)) THEN 'kind'
      WHEN stored.amount <> amounts[stored.ord] OR stored.took_less AND flags[stored.ord] & 1024 = 0 THEN 'amount'
      WHEN stored.ref <> refs[stored.ord]::uuid THEN CASE stored.kind WHEN 10 THEN 'grant' ELSE 'of' END
      WHEN NOT stored.refused AND stored.note IS DISTINCT FROM notes[stored.ord]::jsonb THEN 'note'
    END;
    EXIT WHEN field IS NOT NULL;
    answers[stored.ord] := concat_ws(',', lines[stored.ord], stored.answer);
  END LOOP;
  IF field IS NULL AND seen <> cardinality(lines) THEN field := 'lines'; END IF;
  RETURN CASE WHEN field IS NULL THEN answers ELSE ARRAY['=' || field] END;
END;
$$;
