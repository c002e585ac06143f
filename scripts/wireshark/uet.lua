-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
-- Ultra Ethernet Transport for Wireshark and tshark (tested: 4.0 and 4.4): every field of the
-- PDS, SES and TSS headers (WIRE 1 to 3), the entropy header of the native form, the CRC trailer,
-- and which packet answers which. Its line of a packet is that of uet_dissect. One file, though
-- longer than others here, so that it can be copied alone.
--
-- Use:  tshark -X lua_script:uet.lua -r FILE        once
--       or copy it into a folder of "Personal Lua Plugins" (Help > About Wireshark > Folders)
-- Options (Preferences > Protocols > UET, or tshark -o uet.crc:always):
--       uet.ports  uet.native_protocol  uet.crc  uet.tss_clear

if pcall(Dissector.get, "uet") and Dissector.get("uet") then
  return -- this Wireshark has a dissector of its own
end

local uet = Proto("uet", "Ultra Ethernet Transport")

-- ---- names of numbers (WIRE 2.1, 2.5, 2.6, 3.1) ------------------------------------------------

-- A table from 0 on; "" is a reserved number.
local function names(text)
  local result, number = {}, 0
  for name in text:gmatch("%S+") do
    if name ~= "-" then result[number] = name end
    number = number + 1
  end
  return result
end

local pds_types = names [[
  - TSS RUD_REQ ROD_REQ RUDI_REQ RUDI_RESP UUD_REQ ACK ACK_CC ACK_CCX NACK CP NACK_CCX RUD_CC_REQ
  ROD_CC_REQ]]
local next_hdrs = names [[
  NONE REQUEST_SMALL REQUEST_MEDIUM REQUEST_STD RESPONSE RESPONSE_DATA RESPONSE_DATA_SMALL]]
local ctl_types = names [[
  NOOP ACK_REQ CLEAR CLEAR_REQ CLOSE CLOSE_REQ PROBE CREDIT CREDIT_REQ NEGOTIATION]]
local nack_codes = names [[
  - TRIMMED TRIMMED_LASTHOP TRIMMED_ACK NO_PDC_AVAIL NO_CCC_AVAIL NO_BITMAP NO_PKT_BUFFER
  NO_GTD_DEL_AVAIL NO_SES_MSG_AVAIL NO_RESOURCE PSN_OOR_WINDOW - ROD_OOO INV_DPDCID
  PDC_HDR_MISMATCH CLOSING CLOSING_IN_ERR PKT_NOT_RCVD GTD_RESP_UNAVAIL ACK_WITH_DATA INVALID_SYN
  PDC_MODE_MISMATCH NEW_START_PSN RCVD_SES_PROCG UNEXP_EVENT RCVR_INFER_LOSS]]
nack_codes[0xFD], nack_codes[0xFE], nack_codes[0xFF] = "EXP_NORMAL", "EXP_ERR", "EXP_FATAL"
local cc_types = { [0] = "NSCC", "CREDIT", [14] = "PRIVATE_14", [15] = "PRIVATE_15" }
local ack_requests = { [0] = "NONE", "CLEAR", "CLOSE", "RESERVED" }
local opcodes = names [[
  NO_OP WRITE READ ATOMIC FETCHING_ATOMIC SEND RENDEZVOUS_SEND DATAGRAM_SEND DEFERRABLE_SEND
  TAGGED_SEND RENDEZVOUS_TSEND DEFERRABLE_TSEND DEFERRABLE_RTR TSEND_ATOMIC TSEND_FETCH_ATOMIC
  MSG_ERROR]]
local response_opcodes = names "DEFAULT_RESPONSE RESPONSE RESPONSE_W_DATA NO_RESPONSE"
local lists = { [0] = "EXPECTED", "OVERFLOW", "VENDOR_2", "VENDOR_3" }
local return_codes = names [[
  NULL OK BAD_GENERATION DISABLED DISABLED_GEN NO_MATCH UNSUPPORTED_OP UNSUPPORTED_SIZE AT_INVALID
  AT_PERM AT_ATS_ERROR AT_NO_TRANS AT_OUT_OF_RANGE HOST_POISONED HOST_UNSUCCESS_CMPL
  AMO_UNSUPPORTED_OP AMO_UNSUPPORTED_DT AMO_UNSUPPORTED_SIZE AMO_UNALIGNED AMO_FP_NAN FP_UNDERFLOW
  FP_OVERFLOW FP_INEXACT PERM_VIOLATION OP_VIOLATION BAD_INDEX BAD_PID BAD_JOB_ID BAD_MKEY BAD_ADDR
  CANCELLED UNDELIVERABLE UNCOR UNCOR_TRNSNT TOO_LONG INITIATOR_ERR DROPPED]]
local amo_ops = names [[
  MIN MAX SUM DIFF PROD LOR LAND BOR BAND LXOR BXOR READ WRITE CSWAP CSWAP_NE CSWAP_LE CSWAP_LT
  CSWAP_GE CSWAP_GT MSWAP INVAL]]
local amo_datatypes = names [[
  INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64 INT128 UINT128 FLOAT DOUBLE FLOAT_COMPLEX
  DOUBLE_COMPLEX LONG_DOUBLE LONG_DOUBLE_COMPLEX BF16 FP16]]

local TSS, RUDI_REQ, RUDI_RESP, UUD_REQ, ACK, ACK_CC, ACK_CCX, NACK, CP, NACK_CCX, RUD_CC_REQ =
  1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
local REQUEST_SMALL, REQUEST_MEDIUM, REQUEST_STD, RESPONSE, RESPONSE_DATA = 1, 2, 3, 4, 5
local NOOP, CLOSE, CLOSE_REQ, PROBE, NEGOTIATION = 0, 4, 5, 6, 9
local NSCC, CREDIT = 0, 1
local READ, FETCHING_ATOMIC, MSG_ERROR, RTR = 2, 4, 15, 12
local is_atomic = { [3] = true, [4] = true, [13] = true, [14] = true }
local is_rendezvous = { [6] = true, [10] = true }
local is_deferrable = { [8] = true, [11] = true }
local has_no_data = { [0] = true, [READ] = true, [RTR] = true, [MSG_ERROR] = true }

-- ---- layouts ----------------------------------------------------------------------------------

local all_fields = {}

local function keep(field)
  all_fields[#all_fields + 1] = field
  return field
end

-- The bits [from, from + count) of the wire, most significant first, and how they are shown.
-- `show`: "dec", "hex", "signed", "bytes", or a table of names.
local function bits(byte, bit, count, name, title, show)
  local first = byte + math.floor(bit / 8)
  local length = math.ceil((byte * 8 + bit + count) / 8) - first
  local below = (first + length) * 8 - (byte * 8 + bit + count)
  local mask = count < length * 8 and length <= 4 and math.floor((2 ^ count - 1) * 2 ^ below) or nil
  local abbreviation = "uet." .. name
  local field
  if show == "bytes" then
    field = ProtoField.bytes(abbreviation, title)
  elseif show == "signed" then
    field = ProtoField.int16(abbreviation, title, base.DEC)
  elseif count == 1 then
    field = ProtoField.bool(abbreviation, title, 8, nil, mask)
  else
    local makers = { ProtoField.uint8, ProtoField.uint16, ProtoField.uint24, ProtoField.uint32 }
    local maker = makers[length] or ProtoField.uint64
    local base_of = { dec = base.DEC, hex = base.HEX }
    local values = type(show) == "table" and show or nil
    field = maker(abbreviation, title, base_of[show] or base.DEC, values, mask)
  end
  return {
    key = name:match("[^.]+$"), field = keep(field), first = first, length = length,
    below = below, count = count, show = show,
    -- A field's mask is a Lua number, which is too narrow for 60 bits.
    cut = length == 8 and count == 60 and UInt64.fromhex("0fffffffffffffff") or nil,
  }
end

local function flag(byte, bit, name, title) return bits(byte, bit, 1, name, title, "dec") end

local function join(...)
  local all = {}
  for _, layout in ipairs { ... } do
    for _, item in ipairs(layout) do all[#all + 1] = item end
  end
  return all
end

local pds_type = bits(0, 0, 5, "pds.type", "Type", pds_types)
local pds_next_hdr = bits(0, 5, 4, "pds.next_hdr", "Next header", next_hdrs)
local ecn_marked = flag(1, 2, "pds.m", "M: the packet answered was CE-marked")
local retx = flag(1, 3, "pds.retx", "RETX: retransmission, or answer to one")
local ack_requested = flag(1, 4, "pds.ar", "AR: acknowledge without delay")
local syn = flag(1, 5, "pds.syn", "SYN: the PDC is being opened")
local psn = bits(4, 0, 32, "pds.psn", "PSN", "hex")
local spdcid = bits(8, 0, 16, "pds.spdcid", "PDC of the sender", "hex")
local dpdcid = bits(10, 0, 16, "pds.dpdcid", "PDC of the receiver", "hex")
local probe_opaque = bits(2, 0, 16, "pds.probe_opaque", "Probe opaque", "hex")
local ooo_count = bits(30, 0, 16, "pds.ooo_count", "Packets out of order", "dec")

local target_pdc = {
  [0] = { dpdcid },
  [1] = {
    bits(10, 0, 4, "pds.pdc_info", "PDC info", "hex"),
    bits(10, 4, 12, "pds.psn_offset", "PSN - Start_PSN", "dec"),
  },
}

local layouts = {
  request = { -- WIRE 2.2
    pds_type, pds_next_hdr, retx, ack_requested, syn,
    bits(2, 0, 16, "pds.clear_psn_offset", "CLEAR_PSN - PSN", "signed"), psn, spdcid,
  },
  request_cc = {
    bits(12, 0, 8, "pds.ccc_id", "Congestion control context", "dec"),
    bits(13, 0, 24, "pds.credit_target", "Credit target", "dec"),
  },
  ack = { -- WIRE 2.3
    pds_type, pds_next_hdr, ecn_marked, retx, flag(1, 4, "pds.p", "P: answer to a Probe"),
    bits(1, 5, 2, "pds.req", "Asks the initiator for", ack_requests),
    bits(4, 0, 32, "pds.cack_psn", "Cumulative ACK PSN", "hex"), spdcid, dpdcid,
  },
  ack_psn = { bits(2, 0, 16, "pds.ack_psn_offset", "ACK_PSN - CACK_PSN", "signed") },
  probe = { probe_opaque },
  ack_cc = { -- WIRE 2.4
    bits(12, 0, 4, "pds.cc_type", "Congestion control", cc_types),
    bits(12, 4, 4, "pds.cc_flags", "Congestion control flags", "hex"),
    bits(13, 0, 8, "pds.mpr", "Maximum PSN range / 128", "dec"),
    bits(14, 0, 16, "pds.sack_psn_offset", "SACK base - CACK_PSN", "signed"),
    bits(16, 0, 64, "pds.sack_bitmap", "SACK bitmap", "hex"),
  },
  nscc = {
    bits(24, 0, 16, "pds.service_time", "Service time (128 ns)", "dec"),
    flag(26, 0, "pds.rc", "RC: restore the congestion window"),
    bits(26, 1, 7, "pds.rcv_cwnd_pend", "Window penalty of the receiver", "dec"),
    bits(27, 0, 24, "pds.rcvd_bytes", "Bytes received (256)", "dec"), ooo_count,
  },
  credit = { bits(24, 0, 24, "pds.credit", "Credit", "dec"), ooo_count },
  ack_ccx = { bits(24, 0, 128, "pds.ack_ccx_state", "Private state", "bytes") },
  nack = { -- WIRE 2.5
    pds_type, pds_next_hdr, ecn_marked, retx, flag(1, 4, "pds.nt", "NT: refuses a RUDI request"),
    bits(2, 0, 8, "pds.nack_code", "NACK code", nack_codes),
    bits(3, 0, 8, "pds.vendor_code", "Vendor code", "hex"), spdcid, dpdcid,
    bits(12, 0, 32, "pds.payload", "Payload by code", "dec"),
  },
  nack_psn = { bits(4, 0, 32, "pds.nack_psn", "PSN refused", "hex") },
  nack_pkt_id = { bits(4, 0, 32, "pds.nack_pkt_id", "RUDI packet refused", "hex") },
  nack_ccx = {
    bits(16, 0, 4, "pds.nccx_type", "Private type", "dec"),
    bits(16, 4, 60, "pds.nack_ccx_state1", "Private state 1", "hex"),
    bits(24, 0, 64, "pds.nack_ccx_state2", "Private state 2", "hex"),
  },
  control = { -- WIRE 2.6
    pds_type, bits(0, 5, 4, "pds.ctl_type", "Control type", ctl_types),
    flag(1, 2, "pds.isrod", "ISROD: the PDC being opened is ROD"), retx, ack_requested, syn,
    probe_opaque, psn, spdcid,
    bits(12, 0, 32, "pds.payload", "Payload by type", "dec"),
  },
  negotiation = { -- PDS-215
    bits(12, 0, 8, "pds.neg_type", "Negotiation type", "dec"),
    bits(13, 0, 8, "pds.neg_words", "Length (32-bit words)", "dec"),
    bits(16, 0, 32, "pds.neg_features", "Features", "hex"),
  },
  rudi = { -- WIRE 2.7
    pds_type, pds_next_hdr, ecn_marked, retx, bits(4, 0, 32, "pds.pkt_id", "Packet id", "hex"),
  },
  uud = { pds_type, pds_next_hdr }, -- WIRE 2.8
  tss = { -- WIRE 2.9
    bits(0, 0, 5, "tss.type", "Type", pds_types), flag(0, 5, "tss.sp", "SP: SSI present"),
    flag(0, 7, "tss.an", "AN: which of two keys"),
    bits(1, 0, 24, "tss.sdi", "Secure domain identifier", "dec"),
  },
  ssi = { bits(4, 0, 32, "tss.ssi", "Secure source identifier", "hex") },
  tsc = { -- moved by 4 bytes if there is an SSI
    bits(4, 0, 16, "tss.epoch", "Epoch", "dec"), bits(6, 0, 48, "tss.counter", "Counter", "hex"),
  },
}

local request_head = { -- WIRE 3.2
  bits(0, 2, 6, "ses.opcode", "Opcode", opcodes), bits(1, 0, 2, "ses.version", "Version", "dec"),
  flag(1, 2, "ses.dc", "DC: respond when data is visible"),
  flag(1, 3, "ses.ie", "IE: data of this packet is bad"),
  flag(1, 4, "ses.rel", "REL: relative addressing"),
}
local header_data_valid = flag(1, 5, "ses.hd", "HD: header data is valid")
local request_rest = {
  flag(1, 6, "ses.eom", "EOM: last packet of the message"),
  flag(1, 7, "ses.som", "SOM: first packet of the message"),
  bits(4, 0, 8, "ses.ri_generation", "Generation of the resource index", "dec"),
  bits(5, 0, 24, "ses.job_id", "Job", "dec"),
  bits(8, 4, 12, "ses.pid_on_fep", "PID on FEP", "dec"),
  bits(10, 4, 12, "ses.resource_index", "Resource index", "dec"),
}
local message_id = bits(2, 0, 16, "ses.message_id", "Message", "dec")
local short_length = bits(2, 2, 14, "ses.request_length", "Length of the message", "dec")
local buffer_offset = bits(12, 0, 64, "ses.buffer_offset", "Buffer offset", "hex")
local initiator = bits(20, 0, 32, "ses.initiator", "Initiator ID", "dec")
local match_bits = bits(24, 0, 64, "ses.match_bits", "Match bits or memory key", "hex")
local result = {
  bits(0, 0, 2, "ses.list", "List", lists), bits(0, 2, 6, "ses.opcode", "Opcode", response_opcodes),
  bits(1, 0, 2, "ses.version", "Version", "dec"),
  bits(1, 2, 6, "ses.return_code", "Return code", return_codes),
  bits(5, 0, 24, "ses.job_id", "Job", "dec"),
}

local function tokens(byte)
  return {
    bits(byte, 0, 32, "ses.initiator_restart_token", "Restart token of the initiator", "hex"),
    bits(byte + 4, 0, 32, "ses.target_restart_token", "Restart token of the target", "hex"),
  }
end

layouts.offset = { buffer_offset }
layouts.offset_tokens = tokens(12)
layouts.match = { match_bits }
layouts.match_tokens = tokens(24)
layouts.std = join(request_head, { header_data_valid }, request_rest, {
  message_id, initiator,
  bits(40, 0, 32, "ses.request_length", "Length of the message", "dec"),
})
layouts.std_first = { bits(32, 0, 64, "ses.header_data", "Header data", "hex") }
layouts.std_later = {
  bits(34, 2, 14, "ses.payload_length", "Length of the payload", "dec"),
  bits(36, 0, 32, "ses.message_offset", "Message offset", "dec"),
}
layouts.medium =
  join(request_head, { header_data_valid }, request_rest, { short_length, initiator, match_bits })
layouts.medium_data = { bits(12, 0, 64, "ses.header_data", "Header data", "hex") }
layouts.small = join(request_head, request_rest, { short_length, buffer_offset })
layouts.response = join(result, { -- WIRE 3.9
  message_id, bits(4, 0, 8, "ses.ri_generation", "Generation of the resource index", "dec"),
  bits(8, 0, 32, "ses.modified_length", "Bytes accepted", "dec"),
})
layouts.response_data = join(result, { -- WIRE 3.10
  bits(2, 0, 16, "ses.response_message_id", "Message of the response", "dec"),
  bits(8, 0, 16, "ses.read_request_message_id", "Message of the request", "dec"),
  bits(10, 2, 14, "ses.payload_length", "Length of the payload", "dec"),
  bits(12, 0, 32, "ses.modified_length", "Bytes accepted", "dec"),
  bits(16, 0, 32, "ses.message_offset", "Message offset", "dec"),
})
layouts.response_data_small = join(result, { -- WIRE 3.11
  bits(2, 2, 14, "ses.payload_length", "Length of the payload", "dec"),
  bits(8, 0, 32, "ses.original_request_psn", "PSN of the request", "hex"),
})
layouts.atomic = { -- WIRE 3.5
  bits(0, 0, 8, "ses.atomic.atomic_opcode", "Operation", amo_ops),
  bits(1, 0, 8, "ses.atomic.atomic_datatype", "Datatype", amo_datatypes),
  bits(2, 0, 8, "ses.atomic.semantic_control", "Semantic control", "hex"),
}
layouts.compare_swap = {
  bits(4, 0, 128, "ses.atomic.compare_value", "Compare value or mask", "bytes"),
  bits(20, 0, 128, "ses.atomic.swap_value", "Swap value", "bytes"),
}
layouts.rendezvous = {
  bits(0, 0, 32, "ses.rendezvous.eager_length", "Bytes sent with the request", "dec"),
  bits(4, 0, 8, "ses.rendezvous.read_ri_generation", "Generation to read from", "dec"),
  bits(5, 0, 12, "ses.rendezvous.read_pid_on_fep", "PID on FEP to read from", "dec"),
  bits(6, 4, 12, "ses.rendezvous.read_resource_index", "Resource index to read from", "dec"),
  bits(8, 0, 64, "ses.rendezvous.read_offset", "Offset to read at", "hex"),
  bits(16, 0, 64, "ses.rendezvous.read_memory_key", "Memory key to read with", "hex"),
}

local entropy = bits(0, 0, 16, "entropy", "Entropy", "hex")
local other = {
  payload = keep(ProtoField.bytes("uet.payload", "Payload")),
  rest = keep(ProtoField.bytes("uet.rest", "Padding or unknown trailer")),
  crc = keep(ProtoField.uint32("uet.crc", "CRC-32C", base.HEX)),
  crc_ok = keep(ProtoField.bool("uet.crc_ok", "CRC-32C is right")),
  encrypted = keep(ProtoField.bytes("uet.encrypted", "Encrypted")),
  icv = keep(ProtoField.bytes("uet.icv", "ICV")),
  clear_psn = keep(ProtoField.uint32("uet.pds.clear_psn", "CLEAR_PSN", base.HEX)),
  start_psn = keep(ProtoField.uint32("uet.pds.start_psn", "Start_PSN", base.HEX)),
  ack_psn = keep(ProtoField.uint32("uet.pds.ack_psn", "ACK_PSN", base.HEX)),
  sack_base = keep(ProtoField.uint32("uet.pds.sack_base", "SACK base", base.HEX)),
  request = keep(ProtoField.framenum("uet.request_in", "Answer to", base.NONE, frametype.REQUEST)),
  answer = keep(ProtoField.framenum("uet.answer_in", "Answered in", base.NONE, frametype.RESPONSE)),
  time = keep(ProtoField.relative_time("uet.answer_time", "Time to the answer")),
  covered = keep(ProtoField.framenum("uet.acked_in", "Known to be received from", base.NONE,
    frametype.ACK)),
  first = keep(ProtoField.framenum("uet.retransmission_of", "Sent before in", base.NONE,
    frametype.RETRANS_PREV)),
  read = keep(ProtoField.framenum("uet.read_in", "Data for the request in", base.NONE,
    frametype.REQUEST)),
  data = keep(ProtoField.framenum("uet.data_in", "Data comes in", base.NONE, frametype.RESPONSE)),
}
uet.fields = all_fields

local expert = {
  malformed = ProtoExpert.new("uet.malformed", "Cut short or contradictory", expert.group.MALFORMED,
    expert.severity.ERROR),
  crc = ProtoExpert.new("uet.bad_crc", "CRC-32C is wrong", expert.group.CHECKSUM,
    expert.severity.ERROR),
}
uet.experts = { expert.malformed, expert.crc }

local CRC_NATIVE, CRC_ALWAYS, CRC_NEVER = 0, 1, 2
uet.prefs.ports = Pref.range("UDP ports", "4793", "Ports that are always UET. Those up to 5816, " ..
  "which processes that share an address use, are tried anyway", 65535)
uet.prefs.native_protocol = Pref.uint("IP protocol of the native form", 253,
  "None is assigned; 253 is for experiments. 0: none")
uet.prefs.crc = Pref.enum("CRC trailer", CRC_NATIVE, "Which packets end with a CRC-32C", {
  { 1, "native", CRC_NATIVE }, { 2, "always", CRC_ALWAYS }, { 3, "never", CRC_NEVER } })
uet.prefs.tss_clear = Pref.bool("Packets behind a TSS header are not encrypted", false,
  "Shows them as if in clear (format tests, secure domains that only authenticate)")

-- ---- a line of text, as uet_dissect prints it ---------------------------------------------------

local Line = {}
Line.__index = Line
function Line:word(text)
  self.text = self.text == "" and text or self.text .. " " .. text
end
function Line:number(name, value) self:word(string.format("%s %d", name, value)) end
function Line:hex(name, value)
  if type(value) == "number" then value = string.format("%x", value) end
  self:word(name .. " 0x" .. (value:gsub("^0+(.)", "%1")))
end
function Line:name(all, value) self:word(all[value] or string.format("reserved %d", value)) end
function Line:flags(...)
  local set, all = {}, { ... }
  for i = 1, #all, 2 do
    if all[i + 1] then set[#set + 1] = all[i] end
  end
  if #set > 0 then self:word("[" .. table.concat(set, " ") .. "]") end
end
function Line:pdc(values)
  if values.syn == 1 then
    self:word(string.format("pdc 0x%x>new", values.spdcid))
    self:number("psn_offset", values.psn_offset)
  else
    self:word(string.format("pdc 0x%x>0x%x", values.spdcid, values.dpdcid))
  end
end

-- ---- reading ----------------------------------------------------------------------------------

local function value_of(item, range)
  if item.show == "bytes" then return range:bytes():tohex(true) end
  if item.show == "signed" then return range:int() end
  if item.length > 4 then return range:bytes():tohex(true) end -- hexadecimal digits
  return math.floor(math.floor(range:uint() / 2 ^ item.below) % 2 ^ item.count)
end

-- Adds all fields of `layout` to `tree` and their values to `values`; the header is at `at`.
local function read(layout, tvb, at, tree, values)
  for _, item in ipairs(layout) do
    local range = tvb(at + item.first, item.length)
    values[item.key] = value_of(item, range)
    if item.cut then
      tree:add(item.field, range, range:uint64():band(item.cut))
    else
      tree:add(item.field, range)
    end
  end
end

local function generated(tree, field, value) tree:add(field, value):set_generated() end

local function sum(psn_value, offset) return math.floor((psn_value + offset) % 2 ^ 32) end

-- ---- PDS --------------------------------------------------------------------------------------

local function read_request(tvb, tree, v, line)
  read(layouts.request, tvb, 0, tree, v)
  read(target_pdc[v.syn], tvb, 0, tree, v)
  local clear = sum(v.psn, v.clear_psn_offset)
  generated(tree, other.clear_psn, clear)
  line:hex("psn", v.psn)
  line:hex("clear", clear)
  line:pdc(v)
  if v.syn == 1 then generated(tree, other.start_psn, sum(v.psn, -v.psn_offset)) end
  if v.type >= RUD_CC_REQ then
    read(layouts.request_cc, tvb, 0, tree, v)
    line:number("ccc", v.ccc_id)
    line:number("credit_target", v.credit_target)
  end
  line:flags("syn", v.syn == 1, "ar", v.ar == 1, "retx", v.retx == 1)
end

local function read_ack_cc(tvb, tree, v, line)
  read(layouts.ack_cc, tvb, 0, tree, v)
  v.sack_base = sum(v.cack_psn, v.sack_psn_offset)
  generated(tree, other.sack_base, v.sack_base)
  line:number("mpr", v.mpr)
  line:hex("sack_base", v.sack_base)
  line:hex("sack", v.sack_bitmap)
  line:number("cc_type", v.cc_type)
  if v.type == ACK_CCX then
    read(layouts.ack_ccx, tvb, 0, tree, v)
  elseif v.cc_type == NSCC then
    read(layouts.nscc, tvb, 0, tree, v)
    line:number("service", v.service_time)
    line:number("pend", v.rcv_cwnd_pend)
    line:number("rcvd", v.rcvd_bytes)
    line:number("ooo", v.ooo_count)
  elseif v.cc_type == CREDIT then
    read(layouts.credit, tvb, 0, tree, v)
    line:number("credit", v.credit)
    line:number("ooo", v.ooo_count)
  end
end

local function read_ack(tvb, tree, v, line)
  read(layouts.ack, tvb, 0, tree, v)
  line:hex("cack", v.cack_psn)
  if v.p == 1 then
    read(layouts.probe, tvb, 0, tree, v)
    line:hex("probe", v.probe_opaque)
  else
    read(layouts.ack_psn, tvb, 0, tree, v)
    v.ack_psn = sum(v.cack_psn, v.ack_psn_offset)
    generated(tree, other.ack_psn, v.ack_psn)
    line:hex("psn", v.ack_psn)
  end
  line:pdc(v)
  if v.type ~= ACK then read_ack_cc(tvb, tree, v, line) end
  line:flags("ce", v.m == 1, "retx", v.retx == 1, "probe", v.p == 1, "expected_psn", tvb(1, 1):bitfield(1, 1) == 1, -- PDS-78
    "rc", v.rc == 1, "clear_req", v.req == 1, "close_req", v.req == 2)
end

local function read_nack(tvb, tree, v, line)
  read(layouts.nack, tvb, 0, tree, v)
  read(v.nt == 1 and layouts.nack_pkt_id or layouts.nack_psn, tvb, 0, tree, v)
  if v.type == NACK_CCX then read(layouts.nack_ccx, tvb, 0, tree, v) end
  line:name(nack_codes, v.nack_code)
  line:hex(v.nt == 1 and "pkt_id" or "psn", v.nack_pkt_id or v.nack_psn)
  line:pdc(v)
  line:number("payload", v.payload)
  line:flags("ce", v.m == 1, "retx", v.retx == 1, "rudi", v.nt == 1)
end

local function read_control(tvb, tree, v, line)
  read(layouts.control, tvb, 0, tree, v)
  read(target_pdc[v.syn], tvb, 0, tree, v)
  line:name(ctl_types, v.ctl_type)
  line:hex("psn", v.psn)
  line:pdc(v)
  if v.ctl_type == PROBE then line:hex("probe", v.probe_opaque) end
  if v.ctl_type == NEGOTIATION and tvb:len() >= 20 then
    read(layouts.negotiation, tvb, 0, tree, v)
    line:number("type", v.neg_type)
    line:number("words", v.neg_words)
    line:hex("features", v.neg_features)
  else
    line:number("payload", v.payload)
  end
  line:flags("rod", v.isrod == 1, "syn", v.syn == 1, "ar", v.ar == 1, "retx", v.retx == 1)
end

local function read_rudi(tvb, tree, v, line)
  read(layouts.rudi, tvb, 0, tree, v)
  line:hex("pkt_id", v.pkt_id)
  line:flags("ce", v.type == RUDI_RESP and v.m == 1, "retx", v.retx == 1)
end

local function read_uud(tvb, tree, v) read(layouts.uud, tvb, 0, tree, v) end

-- By type: bytes of the header, and who reads it.
local pds_headers = {
  [2] = { 12, read_request }, [3] = { 12, read_request }, [4] = { 8, read_rudi },
  [5] = { 8, read_rudi }, [6] = { 4, read_uud }, [7] = { 12, read_ack }, [8] = { 32, read_ack },
  [9] = { 40, read_ack }, [10] = { 16, read_nack }, [11] = { 16, read_control },
  [12] = { 32, read_nack }, [13] = { 16, read_request }, [14] = { 16, read_request },
}

-- ---- SES --------------------------------------------------------------------------------------

local function hex64(tvb, at) return tvb(at, 8):bytes():tohex(true) end

-- Reads the extension at `at`; returns its bytes, or nil if it is cut short.
local function read_extension(tvb, at, tree, v, line)
  local left = tvb:len() - at
  if is_atomic[v.opcode] then
    if left < 4 then return nil end
    local swap = tvb(at, 1):uint() >= 0x0D and tvb(at, 1):uint() <= 0x13
    local length = swap and 36 or 4
    if left < length then return nil end
    local branch = tree:add(tvb(at, length), "Atomic extension")
    read(layouts.atomic, tvb, at, branch, v)
    line:name(amo_ops, v.atomic_opcode)
    line:name(amo_datatypes, v.atomic_datatype)
    if swap then
      read(layouts.compare_swap, tvb, at, branch, v)
      line:hex("compare", hex64(tvb, at + 12))
      line:hex("swap", hex64(tvb, at + 28))
      v.swaps = true
    end
    return length
  elseif is_rendezvous[v.opcode] then
    if left < 24 then return nil end
    read(layouts.rendezvous, tvb, at, tree:add(tvb(at, 24), "Rendezvous extension"), v)
    line:number("eager", v.eager_length)
    line:hex("read_key", v.read_memory_key)
    return 24
  end
  return 0
end

local function read_std(tvb, tree, v)
  read(layouts.std, tvb, 0, tree, v)
  read(is_deferrable[v.opcode] and layouts.offset_tokens or layouts.offset, tvb, 0, tree, v)
  read(v.opcode == RTR and layouts.match_tokens or layouts.match, tvb, 0, tree, v)
  read(v.som == 1 and layouts.std_first or layouts.std_later, tvb, 0, tree, v)
  v.offset_hex, v.match_hex = hex64(tvb, 12), hex64(tvb, 24)
end

local function read_medium(tvb, tree, v)
  read(layouts.medium, tvb, 0, tree, v)
  read(v.hd == 1 and layouts.medium_data or layouts.offset, tvb, 0, tree, v)
  v.offset_hex, v.match_hex = v.buffer_offset or "0", v.match_bits
end

local function read_small(tvb, tree, v)
  read(layouts.small, tvb, 0, tree, v)
  v.offset_hex, v.match_hex = v.buffer_offset, "0"
end

-- Bytes at the end of the packet at hand that the capture lacks.
local not_captured = 0

-- WIRE 3.8
local function payload_length_of(v, next_hdr, left)
  if has_no_data[v.opcode] or v.swaps then return 0 end
  if next_hdr ~= REQUEST_STD then return v.request_length end
  if v.som == 0 then return v.payload_length end
  return math.min(v.eager_length or v.request_length, left)
end

-- WRITE, SEND, DATAGRAM_SEND, TAGGED_SEND: a message of one packet carries all of it, whatever of
-- it is left.
local carries_all = { [1] = true, [5] = true, [7] = true, [9] = true }
local function whole_payload(v)
  return carries_all[v.opcode] and v.som == 1 and v.eom == 1 and v.request_length or 0
end

local function read_ses_request(tvb, next_hdr, tree, v, line)
  local form = ({ { 20, read_small }, { 32, read_medium }, { 44, read_std } })[next_hdr]
  if tvb:len() < form[1] then return nil end
  form[2](tvb, tree, v)
  if next_hdr ~= REQUEST_STD and (v.som == 0 or v.eom == 0) then return nil end
  line:name(opcodes, v.opcode)
  line:name(next_hdrs, next_hdr)
  if next_hdr == REQUEST_STD then line:number("msg", v.message_id) end
  line:number("job", v.job_id)
  line:number("pid", v.pid_on_fep)
  line:number("ri", v.resource_index)
  line:number("gen", v.ri_generation)
  line:number("initiator", v.initiator or 0)
  line:hex("match", v.match_hex)
  line:hex("offset", v.offset_hex)
  if v.hd == 1 then line:hex("data", v.header_data or "0") end
  line:number("at", v.message_offset or 0)
  line:number("of", v.request_length)
  local extension = read_extension(tvb, form[1], tree, v, line)
  if not extension then return nil end
  if v.version ~= 0 then line:number("version", v.version) end
  line:flags("som", v.som == 1, "eom", v.eom == 1, "rel", v.rel == 1, "hd", v.hd == 1,
    "dc", v.dc == 1, "ie", v.ie == 1)
  local header = form[1] + extension
  local length = payload_length_of(v, next_hdr, tvb:len() - header + not_captured)
  return header, math.max(length, whole_payload(v))
end

local function read_ses_response(tvb, next_hdr, tree, v, line)
  local forms = {
    [4] = { 12, layouts.response }, [5] = { 20, layouts.response_data },
    [6] = { 12, layouts.response_data_small },
  }
  local form = forms[next_hdr]
  if tvb:len() < form[1] then return nil end
  read(form[2], tvb, 0, tree, v)
  line:name(response_opcodes, v.opcode)
  line:name(return_codes, v.return_code)
  line:number("list", v.list)
  line:number("job", v.job_id)
  if next_hdr == RESPONSE then
    line:number("msg", v.message_id)
    line:number("gen", v.ri_generation)
  elseif next_hdr == RESPONSE_DATA then
    line:number("msg", v.response_message_id)
    line:number("for", v.read_request_message_id)
    line:number("at", v.message_offset)
  else
    line:number("for_psn", v.original_request_psn)
  end
  if v.modified_length then line:number("modified", v.modified_length) end
  if v.version ~= 0 then line:number("version", v.version) end
  return form[1], v.payload_length or 0
end

local ses_header_bytes = { 20, 32, 44, 12, 20, 12 }

-- Adds the SES header, the payload and what is behind it. Returns the values, nil if malformed.
local function read_ses(tvb, next_hdr, tree, line)
  local v, text = {}, setmetatable({ text = "" }, Line)
  local branch = tree:add(tvb(), "SES")
  local header, length
  if next_hdr <= REQUEST_STD then
    header, length = read_ses_request(tvb, next_hdr, branch, v, text)
  elseif next_hdr <= 6 then
    header, length = read_ses_response(tvb, next_hdr, branch, v, text)
  end
  line:word("|")
  local left = header and tvb:len() - header
  if not header then
    local cut = tvb:len() < (ses_header_bytes[next_hdr] or 0)
    line:word(cut and "cut short" or "malformed")
    line:name(next_hdrs, next_hdr)
    line:number("bytes", tvb:len())
    if not_captured > 0 then line:number("missing", not_captured) end
    branch:add_proto_expert_info(expert.malformed)
    return nil
  end
  text:number("payload", length)
  if length > left then text:number("missing", length - left) end
  line:word(text.text)
  branch:set_len(header)
  branch:append_text(": " .. text.text)
  if length > 0 and left > 0 then tree:add(other.payload, tvb(header, math.min(length, left))) end
  if left > length then tree:add(other.rest, tvb(header + length)) end
  return v
end

-- ---- which packet answers which -----------------------------------------------------------------

local sent = {} -- by key: the packets with it, oldest first
local waiting = {} -- by PDC: PSN to entry, not yet known to be received
local found = {} -- by frame number: what is known of it

function uet.init()
  sent, waiting, found = {}, {}, {}
end

local function about(number)
  found[number] = found[number] or {}
  return found[number]
end

local function key_of(kind, from, to, ...)
  return table.concat({ kind, tostring(from), tostring(to), ... }, "|")
end

-- Remembers a packet that will be answered. The same key again is a retransmission.
local function remember(key, pinfo, again)
  local entries = sent[key] or {}
  sent[key] = entries
  local entry = { number = pinfo.number, time = pinfo.rel_ts, port = pinfo.src_port, again = again }
  for _, before in ipairs(entries) do
    if before.port == entry.port and again then
      about(entry.number).first = before.number
      break
    end
  end
  entries[#entries + 1] = entry
  return entry
end

-- The packet that this one answers: that of the asking process, should several share an address,
-- and that transmission of it which the answer's RETX flag tells of.
local function asked(key, pinfo, again)
  local best, best_score = nil, -1
  for _, entry in ipairs(sent[key] or {}) do
    local score = (entry.port == pinfo.dst_port and 2 or 0) + (entry.again == again and 1 or 0)
    if score >= best_score then best, best_score = entry, score end
  end
  return best
end

local function link(entry, pinfo)
  if not entry then return end
  about(pinfo.number).request = entry.number
  local request = about(entry.number)
  if request.answer then return end
  local ns = math.floor((pinfo.rel_ts - entry.time) * 1e9 + 0.5)
  request.answer = pinfo.number
  request.time = NSTime.new(math.floor(ns / 1e9), math.floor(ns % 1e9))
end

-- What the ACK says of other packets than the one it answers: all up to CACK_PSN, and the SACK.
local function mark_received(pinfo, v)
  local pdc = key_of("pdc", pinfo.dst, pinfo.src, v.dpdcid)
  local entries = waiting[pdc]
  if not entries then return end
  for number, list in pairs(entries) do
    local covered = sum(v.cack_psn, -number) < 2 ^ 31
    if not covered and v.sack_bitmap then
      local place = sum(number, -v.sack_base)
      if place < 64 then
        local digit = tonumber(v.sack_bitmap:sub(16 - math.floor(place / 4), -1):sub(1, 1), 16)
        covered = math.floor(digit / 2 ^ (place % 4)) % 2 == 1
      end
    end
    if covered then
      for _, entry in ipairs(list) do about(entry.number).covered = pinfo.number end
      entries[number] = nil
    end
  end
end

local function note_request(pinfo, v)
  local entry = remember(key_of("pds", pinfo.src, pinfo.dst, v.spdcid, v.psn), pinfo, v.retx == 1)
  local pdc = key_of("pdc", pinfo.src, pinfo.dst, v.spdcid)
  local entries = waiting[pdc] or {}
  waiting[pdc] = entries
  entries[v.psn] = entries[v.psn] or {}
  table.insert(entries[v.psn], entry)
end

local function note_pds(pinfo, v)
  local again = v.retx == 1
  local function answers(kind, ...)
    link(asked(key_of(kind, pinfo.dst, pinfo.src, ...), pinfo, again), pinfo)
  end
  local takes_psn = v.ctl_type == NOOP or v.ctl_type == CLOSE or v.ctl_type == CLOSE_REQ
    or v.ctl_type == NEGOTIATION
  if v.clear_psn_offset or takes_psn then
    note_request(pinfo, v)
  elseif v.type == CP and v.ctl_type == PROBE then
    remember(key_of("probe", pinfo.src, pinfo.dst, v.spdcid, v.probe_opaque), pinfo, again)
  elseif v.type == RUDI_REQ then
    remember(key_of("rudi", pinfo.src, pinfo.dst, v.pkt_id), pinfo, again)
  elseif v.type == RUDI_RESP or v.nack_pkt_id then
    answers("rudi", v.pkt_id or v.nack_pkt_id)
  elseif v.ack_psn or v.nack_psn then
    answers("pds", v.dpdcid, v.ack_psn or v.nack_psn)
  elseif v.p == 1 then
    answers("probe", v.dpdcid, v.probe_opaque)
  end
  if v.cack_psn then mark_received(pinfo, v) end
end

-- Read data that comes as a request of the other direction.
local function note_ses(pinfo, pds, ses)
  local asks = ses.opcode == READ or ses.opcode == FETCHING_ATOMIC
  if asks and ses.message_id and ses.request_length then
    local at = ses.message_offset or 0
    local key = key_of("read", pinfo.src, pinfo.dst, ses.job_id, ses.message_id, at)
    remember(key, pinfo, pds.retx == 1)
  elseif ses.read_request_message_id and pds.clear_psn_offset then
    local key = key_of("read", pinfo.dst, pinfo.src, ses.job_id, ses.read_request_message_id,
      ses.message_offset)
    local entry = asked(key, pinfo, false)
    if entry then
      about(pinfo.number).read = entry.number
      about(entry.number).data = about(entry.number).data or pinfo.number
    end
  end
end

local function show_links(number, tree)
  local links = found[number]
  if not links then return end
  for _, name in ipairs { "request", "first", "answer", "time", "covered", "read", "data" } do
    if links[name] then generated(tree, other[name], links[name]) end
  end
end

-- ---- the packet -------------------------------------------------------------------------------

local function malformed(tvb, tree, line)
  line.text = "malformed"
  if tvb:len() >= 2 then
    local number = math.floor(tvb(0, 1):uint() / 8)
    line:name(pds_types, number)
  end
  line:number("bytes", tvb:len())
  tree:add_proto_expert_info(expert.malformed)
end

local function read_packet(tvb, pinfo, tree, line)
  local header = tvb:len() >= 2 and pds_headers[math.floor(tvb(0, 1):uint() / 8)]
  if not header or tvb:len() < header[1] then return malformed(tvb, tree, line) end
  local v = { type = math.floor(tvb(0, 1):uint() / 8) }
  local branch = tree:add(tvb(0, header[1]), "PDS")
  line:name(pds_types, v.type)
  header[2](tvb, branch, v, line)
  branch:append_text(": " .. line.text)
  if not pinfo.visited then note_pds(pinfo, v) end
  local next_hdr = v.next_hdr or 0
  local has_ses = next_hdr ~= 0 and v.type ~= NACK and v.type ~= NACK_CCX
  if has_ses then
    local rest = tvb:len() > header[1] and tvb(header[1]):tvb() or ByteArray.new():tvb("SES")
    local ses = read_ses(rest, next_hdr, tree, line)
    if ses and not pinfo.visited then note_ses(pinfo, v, ses) end
  elseif tvb:len() > header[1] then
    tree:add(other.rest, tvb(header[1]))
  end
  show_links(pinfo.number, tree)
end

local function read_security(tvb, pinfo, tree, line)
  if tvb:len() < 12 then return malformed(tvb, tree, line) end
  local v = {}
  local length = tvb(0, 1):bitfield(5) == 1 and 16 or 12
  if tvb:len() < length then return malformed(tvb, tree, line) end
  local branch = tree:add(tvb(0, length), "TSS")
  read(layouts.tss, tvb, 0, branch, v)
  if v.sp == 1 then read(layouts.ssi, tvb, 0, branch, v) end
  read(layouts.tsc, tvb, length - 12, branch, v)
  line:word("TSS")
  line:number("sdi", v.sdi)
  if v.sp == 1 then line:hex("ssi", v.ssi) end
  line:number("an", v.an)
  line:number("epoch", v.epoch)
  line:hex("counter", v.counter)
  line:number("bytes", tvb:len() - length + not_captured)
  local inner = tvb:len() - length - 16
  if not_captured > 0 then
    if tvb:len() > length then tree:add(other.encrypted, tvb(length)) end
    return
  end
  if inner < 0 then return tree:add_proto_expert_info(expert.malformed) end
  if uet.prefs.tss_clear and inner > 0 then
    read_packet(tvb(length, inner):tvb(), pinfo, tree, setmetatable({ text = "" }, Line))
  elseif inner > 0 then
    tree:add(other.encrypted, tvb(length, inner))
  end
  tree:add(other.icv, tvb(length + inner, 16))
end

-- ---- the CRC trailer (WIRE 1.4) -----------------------------------------------------------------

local xor = bit32 and bit32.bxor or load("return function(a, b) return a ~ b end")()
local crc_table

local function crc32c(digits)
  if not crc_table then
    crc_table = {}
    for byte = 0, 255 do
      local crc = byte
      for _ = 1, 8 do
        local odd = crc % 2 == 1
        crc = math.floor(crc / 2)
        if odd then crc = xor(crc, 0x82F63B78) end
      end
      crc_table[byte] = crc
    end
  end
  local crc = 0xFFFFFFFF
  for i = 1, #digits do
    crc = xor(math.floor(crc / 256), crc_table[xor(crc % 256, digits:byte(i))])
  end
  return xor(crc, 0xFFFFFFFF)
end

-- Takes the trailer off; `headers`: what is covered before `tvb`.
local function read_crc(tvb, tree, headers)
  if not_captured > 0 then
    not_captured = math.max(not_captured - 4, 0)
    return tvb
  end
  local length = tvb:len() - 4
  if length < 0 then return tvb end
  local range = tvb(length, 4)
  local right = crc32c(headers .. (length > 0 and tvb:raw(0, length) or "")) == range:le_uint()
  tree:add_le(other.crc, range)
  generated(tree, other.crc_ok, right)
  if not right then tree:add_proto_expert_info(expert.crc) end
  return length > 0 and tvb(0, length):tvb() or ByteArray.new():tvb("UET")
end

local ip_source, ip6_source = Field.new("ip.src"), Field.new("ipv6.src")
local ip_destination, ip6_destination = Field.new("ip.dst"), Field.new("ipv6.dst")
local udp_length = Field.new("udp.length")

local function be16(value) return string.char(math.floor(value / 256) % 256, value % 256) end

local function last_of(field)
  local all = { field() }
  return all[#all]
end

local function covered_addresses()
  local source = last_of(ip_source) or last_of(ip6_source)
  local destination = last_of(ip_destination) or last_of(ip6_destination)
  return source.range:bytes():raw() .. destination.range:bytes():raw()
end

-- ---- entry points -------------------------------------------------------------------------------

local function begin(tvb, pinfo, root)
  pinfo.cols.protocol = "UET"
  not_captured = tvb:reported_len() - tvb:len()
  return root:add(uet, tvb()), setmetatable({ text = "" }, Line)
end

local function finish(tvb, pinfo, tree, line)
  if tvb:len() > 0 and math.floor(tvb(0, 1):uint() / 8) == TSS then
    read_security(tvb, pinfo, tree, line)
  else
    read_packet(tvb, pinfo, tree, line)
  end
  pinfo.cols.info = line.text
  tree:append_text(", " .. line.text)
end

local function is_secured(tvb) return tvb:len() > 0 and math.floor(tvb(0, 1):uint() / 8) == TSS end

function uet.dissector(tvb, pinfo, root)
  local tree, line = begin(tvb, pinfo, root)
  local packet = tvb
  if uet.prefs.crc == CRC_ALWAYS and not is_secured(tvb) then
    -- The UDP checksum counts as 0: it covers the trailer itself.
    local udp = be16(pinfo.src_port) .. be16(pinfo.dst_port) .. be16(last_of(udp_length).value) ..
      "\0\0"
    packet = read_crc(tvb, tree, covered_addresses() .. udp)
  end
  finish(packet, pinfo, tree, line)
  return tvb:len()
end

-- Processes that share an address listen up to port 5816, where other protocols live too.
local function is_likely(tvb, pinfo)
  if pinfo.dst_port < 4793 or pinfo.dst_port > 5816 or tvb:len() < 4 then return false end
  local number = math.floor(tvb(0, 1):uint() / 8)
  if number == TSS then return tvb:len() >= 28 and tvb(0, 1):bitfield(6) == 0 end
  local header = pds_headers[number]
  if not header or tvb:len() < header[1] then return false end
  local next_hdr = tvb(0, 2):bitfield(5, 4)
  if number == CP then return next_hdr <= 9 end
  if number == UUD_REQ and tvb(2, 2):uint() ~= 0 then return false end
  local ses = ({ [0] = 0, 20, 32, 44, 12, 20, 12 })[next_hdr]
  return ses ~= nil and tvb:len() >= header[1] + ses
end

uet:register_heuristic("udp", function(tvb, pinfo, root)
  if not is_likely(tvb, pinfo) then return false end
  uet.dissector(tvb, pinfo, root)
  pinfo.conversation = uet
  return true
end)

local native = Proto("uet_native", "Ultra Ethernet Transport, native form")
function native.dissector(tvb, pinfo, root)
  if tvb:len() < 4 then return 0 end
  local tree, line = begin(tvb, pinfo, root)
  tree:add(entropy.field, tvb(0, 2))
  local packet = tvb:len() > 4 and tvb(4):tvb() or ByteArray.new():tvb("UET")
  if uet.prefs.crc ~= CRC_NEVER and not is_secured(packet) then
    packet = read_crc(packet, tree, covered_addresses() .. tvb:raw(0, 4))
  end
  finish(packet, pinfo, tree, line)
  return tvb:len()
end

local registered = {}
local function register()
  local udp, ip = DissectorTable.get("udp.port"), DissectorTable.get("ip.proto")
  if registered.ports then udp:remove(registered.ports, uet) end
  if registered.protocol then ip:remove(registered.protocol, native) end
  registered = { ports = uet.prefs.ports, protocol = uet.prefs.native_protocol }
  udp:add(registered.ports, uet)
  ip:add(registered.protocol, native)
end
uet.prefs_changed = register
register()
