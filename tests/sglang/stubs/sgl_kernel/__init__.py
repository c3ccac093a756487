"""Stands in for SGLang's compiled CPU operators, in plain torch, for tests on a machine without their instruction set.

Slow and obvious. Covers what a Llama-like target with an EAGLE-3 drafter calls; anything else can be imported and says
so when it is called. Names and arguments are those of SGLang 0.5.23's call sites. `convert_weight_packed` is missing on
purpose: SGLang takes it as the sign that its packed kernels are there.
"""

import ctypes

import torch


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def refuse(*_args, **_kwargs):
        raise NotImplementedError(f"this stand-in for sgl_kernel has no operator of this name: {name}")

    refuse.__name__ = name
    return refuse


# -- the table from requests to cache slots ---------------------------------------------------------------


def assign_req_to_token_pool_cpu(rows, table, starts, ends, slots, _width):
    """table[row, start:end] = the next slots, request after request."""
    taken = 0
    for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
        table[row, start:end] = slots[taken : taken + end - start].to(table.dtype)
        taken += end - start


def assign_extend_cache_locs_cpu(rows, table, starts, ends, slots, _width):
    """The other way round: the next slots = table[row, start:end]."""
    taken = 0
    for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
        slots[taken : taken + end - start] = table[row, start:end].to(slots.dtype)
        taken += end - start


def assign_draft_cache_locs_contiguous_cpu(rows, table, lengths, slots, _width, topk, steps):
    """For each request the topk * steps slots behind its tokens."""
    count = topk * steps
    for index, (row, length) in enumerate(zip(rows.tolist(), lengths.tolist(), strict=True)):
        slots[index * count : (index + 1) * count] = table[row, length : length + count].to(slots.dtype)


def build_draft_decode_metadata_cpu(table, rows, lengths, topk, steps, width):
    """A table with a row a candidate: the request's tokens, then the candidate's own `steps` draft slots."""
    expanded = torch.zeros((len(rows) * topk, width), dtype=table.dtype)
    for index, (row, length) in enumerate(zip(rows.tolist(), lengths.tolist(), strict=True)):
        for branch in range(topk):
            own = table[row, length + branch * steps : length + (branch + 1) * steps]
            expanded[index * topk + branch, :length] = table[row, :length]
            expanded[index * topk + branch, length : length + len(own)] = own
    return expanded


def copy_all_layer_kv_cache_cpu(pointers, strides, targets, sources):
    """Move cache rows in every buffer; all are read before one is written, because both sets may overlap."""
    targets, sources = targets.tolist(), sources.tolist()
    for base, stride in zip(pointers.tolist(), strides.tolist(), strict=True):
        rows = [ctypes.string_at(base + source * stride, stride) for source in sources]
        for target, row in zip(targets, rows, strict=True):
            ctypes.memmove(base + target * stride, row, stride)


# -- tokens of a verify step ---------------------------------------------------------------


def fill_bonus_tokens_cpu(tokens, counts, bonus, stride):
    """The last accepted token of each request; `counts` include it."""
    tokens = tokens.reshape(-1)
    for index, count in enumerate(counts.tolist()):
        bonus[index] = tokens[index * stride + count - 1]


def fill_accept_out_cache_loc_cpu(chosen, slots, kept):
    """The slots of accepted nodes, closed up; -1 marks what was not accepted."""
    chosen = chosen.reshape(-1)
    accepted = chosen[chosen > -1].long()
    kept[: len(accepted)] = slots[accepted]


def rotate_input_ids_cpu(tokens, starts, lengths, news, last_places=None):
    """Each request's tokens one to the left; the new token goes to the end, or to its place where one is given."""
    news = news.reshape(-1)
    for index, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        if length < 1:
            continue
        tokens[start : start + length - 1] = tokens[start + 1 : start + length].clone()
        place = start + length - 1 if last_places is None else int(last_places[index])
        tokens[place] = news[index]


# -- the tree of drafts ---------------------------------------------------------------


def build_tree_kernel_efficient_cpu(
    parents, selected, lengths, mask, positions, places, first_child, next_sibling, topk, depth, nodes, mode
):
    """Link the selected drafts into a tree, and say which nodes each of them may see.

    Node 0 is the verified token, node i the draft `selected[i - 1]`: a number among all candidates whose parent is the
    group of topk that it came from, group 0 being the root's. Mode 0: mask rows hold the prefix, too; 1: they do not.
    """
    if int(mode) not in (0, 1):
        raise NotImplementedError(f"this stand-in has no bit-packed tree masks (mode {mode})")
    flat_mask, flat_positions = mask.view(-1), positions.view(-1)
    offset = 0
    for index, length in enumerate(lengths.tolist()):
        ancestors = _ancestors(parents[index].tolist(), selected[index].tolist(), topk, depth)
        width = (length if int(mode) == 0 else 0) + nodes
        rows = flat_mask[offset : offset + nodes * width].view(nodes, width)
        tail = rows[:, width - nodes :]
        tail.zero_()
        tail[:, 0] = True
        for node, seen in enumerate(ancestors, start=1):
            for other in seen:
                tail[node, other] = True
            flat_positions[index * nodes + node] = length + len(seen)
        flat_positions[index * nodes] = length
        offset += nodes * width
        places.view(-1)[index * nodes : (index + 1) * nodes] = torch.arange(index * nodes, (index + 1) * nodes)
        _link(ancestors, first_child.view(-1, nodes)[index], next_sibling.view(-1, nodes)[index])


def _ancestors(parents, selected, topk, depth):
    """For each draft node the node itself and its ancestors below the root, nearest first."""
    node_of = {}
    for node, candidate in enumerate(selected, start=1):
        node_of.setdefault(candidate, node)
    found = []
    for node in range(1, len(selected) + 1):
        path = [node]
        while len(path) < depth:
            group = selected[path[-1] - 1] // topk
            parent = None if group == 0 else node_of.get(parents[group])
            if parent is None:
                break
            path.append(parent)
        found.append(path)
    return found


def _link(ancestors, first_child, next_sibling):
    """Children in the order of their numbers, as linked lists."""
    for node in range(len(ancestors), 0, -1):
        path = ancestors[node - 1]
        parent = path[1] if len(path) > 1 else 0
        if int(first_child[parent]) != -1:
            next_sibling[node] = first_child[parent]
        first_child[parent] = node


def verify_tree_greedy_cpu(
    *,
    predicts,
    accept_index,
    accept_token_num,
    candidates,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    target_predict,
):
    """Walk each tree from its root along the target's own choices, as deep as `accept_index` has room."""
    said, output = target_predict.reshape(-1), predicts.view(-1)
    for request in range(len(candidates)):
        place = int(retrive_index[request, 0])
        accept_index[request, 0] = place
        node, accepted = 0, 0
        while accepted + 1 < accept_index.shape[1]:
            child = int(retrive_next_token[request, node])
            while child != -1 and int(candidates[request, child]) != int(said[place]):
                child = int(retrive_next_sibling[request, child])
            if child == -1:
                break
            output[place] = said[place]
            node, place = child, int(retrive_index[request, child])
            accepted += 1
            accept_index[request, accepted] = place
        accept_token_num[request] = accepted
        output[place] = said[place]


# -- attention ---------------------------------------------------------------


def decode_attention_cpu(
    q,
    keys,
    values,
    _k_scale,
    _v_scale,
    out,
    k,
    v,
    slots,
    _logits,
    table,
    rows,
    lengths,
    scaling,
    cap,
    cross,
    window,
    *_more,
):
    """One new token a request (or candidate): its key and value go into the cache, then it sees all of them.

    q, out: (requests, heads, dim); keys, values: (slots, kv heads, dim).
    """
    _refuse(cap, cross, window)
    if k is not None:
        keys[slots.long()] = k.reshape(-1, *keys.shape[1:]).to(keys.dtype)
        values[slots.long()] = v.reshape(-1, *values.shape[1:]).to(values.dtype)
    for index, (row, length) in enumerate(zip(rows.tolist(), lengths.tolist(), strict=True)):
        seen = table[row, :length].long()
        out[index] = _attend(q[index : index + 1], keys[seen], values[seen], scaling, None)[0]


def extend_attention_cpu(
    q, _k, _v, out, keys, values, _k_scale, _v_scale, table, rows, lengths, news, starts, _longest, scaling, cap, cross,
    window, _encoder, _sinks, tree_mask, causal,
):  # fmt: skip
    """Several new tokens a request, whose keys and values are in the cache already; `lengths` count them, too.

    A tree's mask says which of the new tokens each may see; of the prefix they see all, in the mask or not.
    """
    _refuse(cap, cross, window)
    taken = 0
    holds_prefix = tree_mask is not None and tree_mask.numel() != int((news * news).sum())
    sizes = zip(rows.tolist(), lengths.tolist(), news.tolist(), starts.tolist(), strict=True)
    for row, length, new, start in sizes:
        seen = table[row, :length].long()
        mask = None
        if tree_mask is not None:
            width = length if holds_prefix else new
            own = tree_mask.view(-1)[taken : taken + new * width].view(new, width).bool()
            mask = torch.cat([own.new_ones(new, length - width), own], dim=1)
            taken += new * width
        elif causal:
            mask = torch.arange(length)[None, :] <= torch.arange(length - new, length)[:, None]
        out[start : start + new] = _attend(q[start : start + new], keys[seen], values[seen], scaling, mask)


def _attend(q, k, v, scaling, mask):
    """Grouped attention of (tokens, heads, dim) over (seen, kv heads, dim), in float32."""
    groups = q.shape[1] // k.shape[1]
    k = k.float().repeat_interleave(groups, dim=1)
    v = v.float().repeat_interleave(groups, dim=1)
    scores = torch.einsum("qhd,khd->hqk", q.float(), k) * scaling
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).to(q.dtype)


def _refuse(cap, cross, window):
    if cap or cross or window > 0:
        raise NotImplementedError("this stand-in has no logit caps, cross attention or sliding windows")


torch.ops.sgl_kernel.decode_attention_cpu = decode_attention_cpu
torch.ops.sgl_kernel.extend_attention_cpu = extend_attention_cpu
