// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Everything is malloc'd one by one, because fi_freeinfo and fi_dupinfo treat it so.
#include "settings/nic_attr.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "ops.h"
#include "provider.h"

namespace uet::prov {
namespace {

template <class T>
T* allocate() {
  auto* object = static_cast<T*>(std::calloc(1, sizeof(T)));
  if (object == nullptr) throw std::bad_alloc();
  return object;
}

void free_nic(fid_nic* nic) noexcept {
  if (nic->device_attr != nullptr) {
    std::free(nic->device_attr->name);
    std::free(nic->device_attr->device_id);
    std::free(nic->device_attr->device_version);
    std::free(nic->device_attr->vendor_id);
    std::free(nic->device_attr->driver);
    std::free(nic->device_attr->firmware);
  }
  if (nic->link_attr != nullptr) {
    std::free(nic->link_attr->address);
    std::free(nic->link_attr->network_type);
  }
  std::free(nic->prov_attr);
  std::free(nic->device_attr);
  std::free(nic->bus_attr);
  std::free(nic->link_attr);
  std::free(nic);
}

struct FreeNic {
  void operator()(fid_nic* nic) const noexcept { free_nic(nic); }
};
using NicPtr = std::unique_ptr<fid_nic, FreeNic>;

char* duplicate_or_null(const char* text) { return text != nullptr ? duplicate(text) : nullptr; }

NicPtr allocate_nic();

int nic_close(fid* fid) noexcept {
  free_nic(reinterpret_cast<fid_nic*>(fid));
  return 0;
}

NicPtr copy_nic(const fid_nic& from) {
  NicPtr to = allocate_nic();
  to->device_attr->name = duplicate_or_null(from.device_attr->name);
  to->device_attr->device_id = duplicate_or_null(from.device_attr->device_id);
  to->device_attr->device_version = duplicate_or_null(from.device_attr->device_version);
  to->device_attr->vendor_id = duplicate_or_null(from.device_attr->vendor_id);
  to->device_attr->driver = duplicate_or_null(from.device_attr->driver);
  to->device_attr->firmware = duplicate_or_null(from.device_attr->firmware);
  *to->bus_attr = *from.bus_attr;
  to->link_attr->address = duplicate_or_null(from.link_attr->address);
  to->link_attr->mtu = from.link_attr->mtu;
  to->link_attr->speed = from.link_attr->speed;
  to->link_attr->state = from.link_attr->state;
  to->link_attr->network_type = duplicate_or_null(from.link_attr->network_type);
  to->prov_attr = duplicate_or_null(static_cast<const char*>(from.prov_attr));
  return to;
}

int nic_control(fid* fid, int command, void* argument) noexcept {
  if (command != FI_DUP) return -FI_ENOSYS;
  *static_cast<struct fid**>(argument) = nullptr;  // fi_dupinfo closes what is there on an error
  return guarded([&] {
    auto copy = copy_nic(*reinterpret_cast<fid_nic*>(fid));
    *static_cast<struct fid**>(argument) = &copy.release()->fid;
    return 0;
  });
}

// Behind the text that is there already, as fi_tostr and so "fi_info -v" have it: `length` is what
// is left behind it.
int nic_tostr(const fid* fid, char* buffer, std::size_t length) noexcept {
  const auto& nic = *reinterpret_cast<const fid_nic*>(fid);
  const auto shown = [](const char* text) { return text != nullptr ? text : ""; };
  const fi_pci_attr& pci = nic.bus_attr->attr.pci;
  char bus[64] = "unknown";
  if (nic.bus_attr->bus_type == FI_BUS_PCI) {
    std::snprintf(bus, sizeof bus, "pci %04x:%02x:%02x.%x", pci.domain_id, pci.bus_id,
                  pci.device_id, pci.function_id);
  }
  const fi_link_attr& link = *nic.link_attr;
  std::snprintf(buffer + std::strlen(buffer), length,
                "    nic:\n"
                "        fi_device_attr:\n"
                "            name: %s\n"
                "            driver: %s\n"
                "        fi_bus_attr: %s\n"
                "        fi_link_attr:\n"
                "            address: %s\n"
                "            mtu: %zu\n"
                "            speed: %zu\n"
                "            state: %s\n"
                "            network_type: %s\n"
                "        transport security: %s\n",
                shown(nic.device_attr->name), shown(nic.device_attr->driver), bus,
                shown(link.address), link.mtu, link.speed,
                link.state == FI_LINK_UP ? "FI_LINK_UP" : "FI_LINK_DOWN", shown(link.network_type),
                shown(static_cast<const char*>(nic.prov_attr)));
  return 0;
}

fi_ops nic_ops = {
    .size = sizeof(fi_ops),
    .close = nic_close,
    .bind = no_bind,
    .control = nic_control,
    .ops_open = no_ops_open,
    .tostr = nic_tostr,
    .ops_set = no_ops_set,
};

NicPtr allocate_nic() {
  NicPtr nic(allocate<fid_nic>());
  nic->fid.fclass = FI_CLASS_NIC;
  nic->fid.ops = &nic_ops;
  nic->device_attr = allocate<fi_device_attr>();
  nic->bus_attr = allocate<fi_bus_attr>();
  nic->link_attr = allocate<fi_link_attr>();
  return nic;
}

}  // namespace

char* duplicate(const char* text) {
  char* copy = strdup(text);
  if (copy == nullptr) throw std::bad_alloc();
  return copy;
}

fid_nic* make_nic(const nic::Interface& interface, const std::string& back_end,
                  const std::string& security) {
  NicPtr nic = allocate_nic();
  nic->device_attr->name = duplicate(interface.name.c_str());
  nic->device_attr->driver = duplicate(back_end.c_str());
  nic->bus_attr->bus_type = interface.pci ? FI_BUS_PCI : FI_BUS_UNKNOWN;
  if (interface.pci) {
    nic->bus_attr->attr.pci = {interface.pci->domain, interface.pci->bus, interface.pci->device,
                               interface.pci->function};
  }
  char mac[18];
  const auto& m = interface.mac;
  std::snprintf(mac, sizeof mac, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
                m[5]);
  nic->link_attr->address = duplicate(mac);
  nic->link_attr->mtu = interface.mtu;
  nic->link_attr->speed = interface.link_rate_bps;
  nic->link_attr->state = interface.link_up ? FI_LINK_UP : FI_LINK_DOWN;
  nic->link_attr->network_type = duplicate(interface.loopback ? "loopback" : "Ethernet");
  nic->prov_attr = duplicate(security.c_str());
  return nic.release();
}

}  // namespace uet::prov
